// SPDX-License-Identifier: Apache-2.0
// session_probe ARTIFACT THREADS: each thread calls one session many times at its own batch
// size and holds every answer against the first one at that size, to the bit. Then it prints the
// files that this process has mapped, one a line.
#include <hasten/runtime.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace {

using hasten::Session;
using hasten::Tensor;

constexpr int kCalls = 25;

// Every symbol stands for `size`, so equal symbols are equal.
std::vector<Tensor> inputs_for(const Session& session, int64_t size) {
  std::vector<Tensor> inputs;
  for (const hasten::TensorInfo& info : session.inputs()) {
    hasten::Shape shape;
    for (const std::string& axis : info.axes) {
      char* end = nullptr;
      const int64_t fixed = std::strtoll(axis.c_str(), &end, 10);
      shape.push_back(*end == '\0' && end != axis.c_str() ? fixed : size);
    }
    Tensor tensor = Tensor::zeros(info.dtype, shape);
    if (info.dtype == hasten::DType::kFloat32) {
      auto* values = static_cast<float*>(tensor.data());
      for (size_t i = 0; i < tensor.size(); ++i) values[i] = static_cast<float>(i % 7) - 3;
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

bool equal(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].nbytes() != b[i].nbytes() || !a[i].is_compact() || !b[i].is_compact()) return false;
    if (std::memcmp(a[i].data(), b[i].data(), a[i].nbytes()) != 0) return false;
  }
  return true;
}

// The number of calls that answered differently from the first.
int call_often(const Session& session, int64_t size) {
  const std::vector<Tensor> inputs = inputs_for(session, size);
  const auto first = session.run(inputs);
  if (!first) {
    std::fprintf(stderr, "%s\n", first.error().message.c_str());
    return kCalls;
  }
  int differing = 0;
  for (int i = 1; i < kCalls; ++i) {
    const auto again = session.run(inputs);
    if (!again || !equal(*first, *again)) ++differing;
  }
  return differing;
}

void print_mapped_files() {
  std::ifstream maps("/proc/self/maps");
  std::set<std::string> files;
  for (std::string line; std::getline(maps, line);) {
    if (const size_t at = line.find('/'); at != std::string::npos) files.insert(line.substr(at));
  }
  for (const std::string& file : files) std::printf("%s\n", file.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto session = Session::load(argv[1]);
  if (!session) {
    std::fprintf(stderr, "%s\n", session.error().message.c_str());
    return 1;
  }
  for (const std::string& warning : session->warnings()) {
    std::fprintf(stderr, "warning: %s\n", warning.c_str());
  }
  std::atomic<int> differing = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < std::atoi(argv[2]); ++t) {
      threads.emplace_back([&, t] { differing += call_often(*session, 1 + t % 3); });
    }
  }
  std::printf("%s: %d calls differ\n", session->backend().c_str(), differing.load());
  print_mapped_files();
  return differing == 0 ? 0 : 1;
}
