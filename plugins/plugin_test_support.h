// SPDX-License-Identifier: Apache-2.0
// For the tests of plugins: opens one by its C table, as the host does, and keeps what
// comes back. The test program defines HASTEN_TEST_PLUGIN and HASTEN_TEST_DATA.
#pragma once

#include <hasten/plugin.hpp>
#include <hasten/plugin_tensor.hpp>

#include <dlfcn.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace hasten::test {

struct Answer {
  hasten_code code = HASTEN_OK;
  std::string text;
  bool says(std::string_view part) const { return text.find(part) != text.npos; }
};

struct TextSink : hasten_sink {
  TextSink() {
    write = [](hasten_sink* self, const char* part, size_t size) {
      static_cast<TextSink*>(self)->text.append(part, size);
    };
  }
  std::string text;
};

template <class T>
constexpr DLDataType type_of() {
  if constexpr (std::is_same_v<T, bool>) {
    return {kDLBool, 8, 1};
  } else {
    const auto code = std::is_floating_point_v<T> ? kDLFloat
                      : std::is_signed_v<T>       ? kDLInt
                                                  : kDLUInt;
    return {static_cast<uint8_t>(code), static_cast<uint8_t>(8 * sizeof(T)), 1};
  }
}

// An input that owns its elements.
struct Input {
  DLDataType type{};
  std::vector<int64_t> shape, strides;
  std::vector<std::byte> bytes;

  template <class T>
  static Input of(std::vector<int64_t> shape, std::initializer_list<T> values,
                  DLDataType type = type_of<T>()) {
    Input in;
    in.type = type;
    in.shape = std::move(shape);
    in.strides.resize(in.shape.size());
    write_compact_strides(in.shape, in.strides.data());
    in.bytes.resize(values.size() * sizeof(T));
    if (values.size() > 0) std::memcpy(in.bytes.data(), values.begin(), in.bytes.size());
    return in;
  }
  DLTensor view() {
    return {.data = bytes.empty() ? nullptr : bytes.data(),
            .device = {kDLCPU, 0},
            .ndim = static_cast<int32_t>(shape.size()),
            .dtype = type,
            .shape = shape.data(),
            .strides = strides.data(),
            .byte_offset = 0};
  }
};

template <class T>
std::vector<T> values_of(const OwnedTensor& t) {
  if (t->dl_tensor.dtype.bits != 8 * sizeof(T)) throw std::logic_error("another element size");
  std::vector<T> out(count_of(shape_of(t->dl_tensor)));
  copy_compact(t->dl_tensor, reinterpret_cast<std::byte*>(out.data()));
  return out;
}
inline std::vector<int64_t> shape_vector(const OwnedTensor& t) {
  return {shape_of(t->dl_tensor).begin(), shape_of(t->dl_tensor).end()};
}

class Built {
 public:
  Built(const hasten_backend_api& api, hasten_executable* raw, Answer answer)
      : api_(&api), raw_(raw), answer_(std::move(answer)) {}
  Built(Built&& other) noexcept
      : api_(other.api_), raw_(std::exchange(other.raw_, nullptr)), answer_(other.answer_) {}
  ~Built() { api_->destroy(raw_); }
  explicit operator bool() const { return answer_.code == HASTEN_OK; }
  const Answer& answer() const { return answer_; }

  std::pair<size_t, size_t> arity() const {
    std::pair<size_t, size_t> out;
    if (api_->arity(raw_, &out.first, &out.second) != HASTEN_OK) throw std::logic_error("arity");
    return out;
  }
  Answer run(std::vector<DLTensor> inputs, std::vector<OwnedTensor>& outputs) const {
    std::vector<DLManagedTensorVersioned*> raw(arity().second);
    TextSink error;
    const hasten_code code =
        api_->run(raw_, inputs.data(), inputs.size(), raw.data(), raw.size(), &error);
    outputs.clear();
    for (auto* tensor : raw) outputs.emplace_back(tensor);
    return {code, error.text};
  }
  // Throws when the call fails: for tests that are about the values.
  std::vector<OwnedTensor> operator()(std::vector<DLTensor> inputs) const {
    std::vector<OwnedTensor> outputs;
    const Answer answer = run(std::move(inputs), outputs);
    if (answer.code != HASTEN_OK) throw std::runtime_error(answer.text);
    return outputs;
  }
  Answer save(const std::string& dir) const {
    TextSink error;
    const hasten_code code = api_->save(raw_, dir.c_str(), &error);
    return {code, error.text};
  }
  hasten_executable* raw() const { return raw_; }

 private:
  const hasten_backend_api* api_;
  hasten_executable* raw_;
  Answer answer_;
};

class Plugin {
 public:
  // Of the path in HASTEN_TEST_PLUGIN.
  explicit Plugin(const char* path) {
    void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) throw std::runtime_error(dlerror());
    const auto entry =
        reinterpret_cast<hasten_backend_entry_fn>(dlsym(handle, HASTEN_BACKEND_ENTRY));
    api_ = entry ? entry(HASTEN_ABI_MAJOR, HASTEN_ABI_MINOR) : nullptr;
    if (!api_) throw std::runtime_error(std::string(path) + " is not a plugin of this ABI");
  }
  const hasten_backend_api& api() const { return *api_; }

  Answer describe() const {
    TextSink json;
    const hasten_code code = api_->describe(&json);
    return {code, json.text};
  }
  Answer probe(int threads = 1) const {
    TextSink text;
    const hasten_device device = on_cpu(threads);
    const hasten_code code = api_->probe(&device, &text);
    return {code, text.text};
  }
  Answer inspect(const std::string& path, const char* format = "onnx",
                 const char* graph = "{}") const {
    TextSink json, error;
    hasten_model model = model_at(path, format);
    model.graph_json = graph;
    const hasten_code code = api_->inspect(&model, &json, &error);
    return {code, code == HASTEN_OK ? json.text : error.text};
  }
  Answer candidates(const char* format, int threads) const {
    TextSink json, error;
    const hasten_model model = model_at("unread", format);
    const hasten_device device = on_cpu(threads);
    const hasten_code code = api_->candidates(&model, &device, &json, &error);
    return {code, code == HASTEN_OK ? json.text : error.text};
  }
  Built build(const std::string& path, std::vector<hasten_option> options = {},
              const char* format = "onnx", const char* graph = "{}") const {
    TextSink error;
    hasten_model model = model_at(path, format);
    model.graph_json = graph;
    const hasten_device device = on_cpu(1);
    hasten_executable* raw = nullptr;
    const hasten_code code =
        api_->build(&model, &device, options.data(), options.size(), "/nonexistent", &raw, &error);
    return {*api_, raw, {code, error.text}};
  }
  Built load(const std::string& dir) const {
    TextSink error;
    const hasten_device device = on_cpu(1);
    hasten_executable* raw = nullptr;
    const hasten_code code = api_->load(dir.c_str(), &device, &raw, &error);
    return {*api_, raw, {code, error.text}};
  }

 private:
  static hasten_device on_cpu(int threads) { return {sizeof(hasten_device), {kDLCPU, 0}, threads}; }
  static hasten_model model_at(const std::string& path, const char* format) {
    return {sizeof(hasten_model), path.c_str(), format, "{}"};
  }
  const hasten_backend_api* api_ = nullptr;
};

// An empty folder for one test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = std::filesystem::temp_directory_path() / "hasten-test-XXXXXX";
    if (!mkdtemp(name.data())) throw std::runtime_error("mkdtemp failed");
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace hasten::test
