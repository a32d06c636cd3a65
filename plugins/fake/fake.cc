// SPDX-License-Identifier: Apache-2.0
// A backend that computes tiny functions, takes as long as it is told to, and
// commits faults on request. For the tests of everything that hosts a backend.
#include <hasten/plugin.hpp>

#include <time.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <mutex>

#include "fake_faults.h"
#include "fake_model.h"

namespace fake {
namespace {

using hasten::Options;
using hasten::OwnedTensor;

int64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * int64_t{1'000'000'000} + t.tv_nsec;
}

// Everything an executable is made of; also what save() writes.
struct Settings {
  std::string function = "identity", fault = "none";
  size_t n_inputs = 1, n_outputs = 1;
  std::string dtype, rank;  // Of the first input; empty: anything goes.
  int latency_us = 0, batch_latency_us = 0, seed = 0, at_batch = 0, baked_batch = 2,
      after_calls = 0;
  double noise = 0;
};

std::string dtype_name(DLDataType dtype) {
  if (dtype.code == kDLBool) return "bool";
  if (dtype.code == kDLBfloat) return "bfloat16";
  const char* kind = dtype.code == kDLFloat  ? "float"
                     : dtype.code == kDLUInt ? "uint"
                     : dtype.code == kDLInt  ? "int"
                                             : "complex";
  return kind + std::to_string(dtype.bits);
}

class FakeExecutable final : public hasten::PluginExecutable {
 public:
  explicit FakeExecutable(Settings settings)
      : s_(std::move(settings)), random_(static_cast<unsigned>(s_.seed)) {}

  void run(std::span<const DLTensor> inputs, std::span<OwnedTensor> outputs) override {
    const int64_t start = now_ns();
    check(inputs, outputs.size());
    std::vector<Dense> in;
    for (const DLTensor& t : inputs) in.push_back(dense(t));
    const int64_t batch = in.empty() ? 1 : in[0].rows();
    const std::string fault = due(batch) ? s_.fault : "none";

    commit_run_fault(fault);
    std::vector<Dense> out = call(s_.function, std::move(in));
    spoil(fault, s_.baked_batch, out);
    if (fault == "write_input") write_into(inputs);
    for (size_t i = 0; i < outputs.size(); ++i) outputs[i] = handed_out(fault, i, out[i], inputs);
    wait_until(start + latency_ns(fault, batch));
  }

  void save(const std::string& dir) override {
    if (s_.fault == "save_fail") throw PluginError(HASTEN_INTERNAL, "fake: nothing can be saved");
    std::ofstream file(std::filesystem::path(dir) / "fake.txt");
    file << s_.function << ' ' << s_.fault << ' ' << s_.n_inputs << ' ' << s_.n_outputs << ' '
         << (s_.dtype.empty() ? "-" : s_.dtype) << ' ' << (s_.rank.empty() ? "-" : s_.rank) << ' '
         << s_.latency_us << ' ' << s_.batch_latency_us << ' ' << s_.seed << ' ' << s_.at_batch
         << ' ' << s_.baked_batch << ' ' << s_.after_calls << ' ' << s_.noise << '\n';
    if (!file.flush()) throw PluginError(HASTEN_INTERNAL, "fake: cannot write into " + dir);
  }

  std::pair<size_t, size_t> arity() override { return {s_.n_inputs, s_.n_outputs}; }

 private:
  void check(std::span<const DLTensor> inputs, size_t n_outputs) const {
    if (inputs.size() != s_.n_inputs || n_outputs != s_.n_outputs) {
      throw PluginError(HASTEN_INVALID_ARGUMENT, "fake: wrong number of inputs or outputs");
    }
    if (inputs.empty() || s_.dtype.empty()) return;
    if (dtype_name(inputs[0].dtype) != s_.dtype) {
      throw PluginError(HASTEN_INVALID_ARGUMENT,
                        "fake: input 0 is " + dtype_name(inputs[0].dtype) + ", not " + s_.dtype);
    }
    if (std::to_string(inputs[0].ndim) != s_.rank) {
      throw PluginError(HASTEN_INVALID_ARGUMENT, "fake: input 0 does not have rank " + s_.rank);
    }
  }

  bool due(int64_t batch) {
    const int call = calls_.fetch_add(1);
    return call >= s_.after_calls && (s_.at_batch == 0 || s_.at_batch == batch);
  }

  static void write_into(std::span<const DLTensor> inputs) {
    for (const DLTensor& t : inputs) {
      Dense whole = dense(t);
      if (whole.data.empty()) continue;
      auto* first = static_cast<unsigned char*>(t.data) + t.byte_offset;
      *first = static_cast<unsigned char>(*first ^ 0x55u);
    }
  }

  OwnedTensor handed_out(const std::string& fault, size_t i, Dense& out,
                         std::span<const DLTensor> inputs) {
    if (fault == "alias_input" && i < inputs.size() &&
        out.data.size() == dense(inputs[i]).data.size()) {
      auto* data = static_cast<std::byte*>(inputs[i].data) + inputs[i].byte_offset;
      std::memcpy(data, out.data.data(), out.data.size());
      return managed(out, nullptr, data);
    }
    if (fault == "alias_last") {
      const std::lock_guard lock(mutex_);
      kept_.resize(s_.n_outputs);
      // A larger batch makes a new buffer: the fault is a shared result, not an overflow.
      if (!kept_[i] || kept_[i]->size() < out.data.size()) {
        kept_[i] = std::make_shared<std::vector<std::byte>>(out.data.size());
      }
      std::memcpy(kept_[i]->data(), out.data.data(), out.data.size());
      return managed(out, kept_[i], kept_[i]->data());
    }
    OwnedTensor tensor = managed(std::move(out));
    if (fault == "no_strides") tensor->dl_tensor.strides = nullptr;
    return tensor;
  }

  int64_t latency_ns(const std::string& fault, int64_t batch) {
    double us = s_.latency_us + static_cast<double>(batch) * s_.batch_latency_us;
    if (fault == "slow") us = us * 10 + 2000;
    if (s_.noise > 0) {
      const std::lock_guard lock(mutex_);
      us *= std::exp(std::normal_distribution<double>(0, s_.noise)(random_));
    }
    return static_cast<int64_t>(us * 1000);
  }

  // Busy, as a backend is: a sleeping call would be woken late.
  static void wait_until(int64_t end) {
    while (now_ns() < end) {
    }
  }

  Settings s_;
  std::atomic<int> calls_{0};
  std::mutex mutex_;  // random_, kept_: run() may be called from several threads.
  std::mt19937 random_;
  std::vector<std::shared_ptr<std::vector<std::byte>>> kept_;
};

const hasten::Description& description() {
  static const hasten::Description d = [] {
    hasten::Description made;
    made.title = "scripted backend for tests";
    made.formats = {"fake", "onnx", "torchscript", "pt2"};
    made.inspects = {"fake"};
    std::vector<std::string> names = {""};
    for (const auto& [name, function] : functions()) names.push_back(name);
    std::vector<std::string> choices = faults();
    choices.emplace_back();
    made.options = {
        {"threads", "int", "0", "accepted, and of no effect"},
        {"function", "enum", "", "what to compute; empty: what the model file says", names},
        {"arity", "int", "1", "inputs of copy, for a model that is no fake one"},
        {"fault", "enum", "", "the fault to commit; empty: what the model file says", choices},
        {"at_batch", "int", "0", "faults of run only at this batch size; 0: at any"},
        {"after_calls", "int", "0", "faults of run only after so many calls"},
        {"baked_batch", "int", "2", "freeze_batch: the batch size of every answer"},
        {"latency_us", "int", "", "time of a call; empty: what the model file says"},
        {"batch_latency_us", "int", "", "time for each row on top"},
        {"noise", "float", "0", "relative standard deviation of the time of a call"},
        {"seed", "int", "0", "of the noise"},
    };
    return made;
  }();
  return d;
}

// A host that is tested needs a plugin whose probe misbehaves as well.
void commit_probe_fault() {
  const char* fault = std::getenv("HASTEN_FAKE_PROBE");
  if (!fault) return;
  if (std::string_view(fault) == "crash") crash();
  if (std::string_view(fault) == "hang") hang(true);
  throw PluginError(HASTEN_UNAVAILABLE,
                    "switched off by HASTEN_FAKE_PROBE\nunset HASTEN_FAKE_PROBE");
}

class FakeBackend final : public hasten::PluginBackend {
 public:
  const hasten::Description& describe() override { return description(); }

  std::string probe(const hasten_device&) override {
    commit_probe_fault();
    return R"({"library_version":"1.0"})";
  }

  std::string inspect(const hasten_model& model) override {
    if (std::string_view(model.format) != "fake") return PluginBackend::inspect(model);
    const Model m = read_model(model.path);
    return "{\"inputs\":" + to_json(m.inputs) + ",\"outputs\":" + to_json(m.outputs) + "}";
  }

  std::vector<hasten::ConfigProposal> candidates(const hasten_model& model,
                                                 const hasten_device&) override {
    // Beside real backends it runs only when somebody asks for it.
    if (std::string_view(model.format) != "fake") return {};
    return {{"baseline", {}},
            {"default", {{"threads", "1"}}},
            {"extra", {{"threads", "2"}}},
            {"lossy", {{"fault", "imprecise"}}}};
  }

  std::unique_ptr<hasten::PluginExecutable> build(const hasten_model& model, const hasten_device&,
                                                  const Options& options,
                                                  const std::string&) override {
    commit_build_fault(options.text("fault"));
    Settings s;
    if (std::string_view(model.format) == "fake") {
      const Model m = read_model(model.path);
      s.function = m.function;
      s.n_inputs = m.inputs.size();
      s.n_outputs = m.outputs.size();
      s.latency_us = m.latency_us;
      s.batch_latency_us = m.batch_latency_us;
      if (!m.inputs.empty()) {
        s.dtype = m.inputs[0].dtype;
        s.rank = std::to_string(m.inputs[0].axes.size());
      }
      s.fault = m.fault;
      s.at_batch = m.at_batch;
      s.after_calls = m.after_calls;
    } else {
      if (!std::filesystem::exists(model.path)) {
        throw PluginError(HASTEN_INVALID_ARGUMENT, std::string(model.path) + " does not exist");
      }
      s.n_inputs = s.n_outputs = static_cast<size_t>(options.integer("arity"));
    }
    if (options.has("function")) s.function = options.text("function");
    if (const Function f = functions().at(s.function); f.n_inputs > 0) {
      s.n_inputs = f.n_inputs;
      s.n_outputs = f.n_outputs;
    }
    if (options.has("fault")) {
      s.fault = options.text("fault");
      s.at_batch = options.integer("at_batch");
      s.after_calls = options.integer("after_calls");
    }
    if (options.has("latency_us")) s.latency_us = options.integer("latency_us");
    if (options.has("batch_latency_us")) s.batch_latency_us = options.integer("batch_latency_us");
    s.seed = options.integer("seed");
    s.baked_batch = options.integer("baked_batch");
    s.noise = options.number("noise");
    return std::make_unique<FakeExecutable>(std::move(s));
  }

  std::unique_ptr<hasten::PluginExecutable> load(const std::string& dir,
                                                 const hasten_device&) override {
    std::ifstream file(std::filesystem::path(dir) / "fake.txt");
    Settings s;
    file >> s.function >> s.fault >> s.n_inputs >> s.n_outputs >> s.dtype >> s.rank >>
        s.latency_us >> s.batch_latency_us >> s.seed >> s.at_batch >> s.baked_batch >>
        s.after_calls >> s.noise;
    if (!file) throw PluginError(HASTEN_INVALID_ARGUMENT, dir + " holds no fake executable");
    if (s.fault == "load_fail") throw PluginError(HASTEN_INTERNAL, "fake: nothing can be loaded");
    if (s.fault == "stale_save") s.fault = "zeros";
    if (s.dtype == "-") s.dtype.clear();
    if (s.rank == "-") s.rank.clear();
    return std::make_unique<FakeExecutable>(std::move(s));
  }
};

}  // namespace
}  // namespace fake

HASTEN_EXPORT_BACKEND(fake::FakeBackend, "fake", "1.0", HASTEN_TRAIT_CONCURRENT_RUN)
