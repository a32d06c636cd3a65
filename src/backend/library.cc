// SPDX-License-Identifier: Apache-2.0
#include "backend/library.h"

#include <dlfcn.h>

#include <array>
#include <utility>

#include "backend/string_sink.h"
#include "base/text.h"

namespace hasten {
namespace {

Code from_c(hasten_code code) {
  switch (code) {
    case HASTEN_UNAVAILABLE:
      return Code::kUnavailable;
    case HASTEN_UNSUPPORTED:
      return Code::kUnsupported;
    case HASTEN_INVALID_ARGUMENT:
      return Code::kInvalidArgument;
    case HASTEN_BUILD_FAILED:
      return Code::kBuildFailed;
    case HASTEN_RUN_FAILED:
      return Code::kRunFailed;
    case HASTEN_OUT_OF_MEMORY:
      return Code::kOutOfMemory;
    case HASTEN_OK:
    case HASTEN_INTERNAL:
      break;
  }
  return Code::kInternal;
}

Error error_of(hasten_code code, const std::string& text, std::string_view backend) {
  // A plugin may speak any encoding; our messages are UTF-8.
  Error error{from_c(code), valid_utf8(text)};
  // The contract: a sentence, then the remedy on a line of its own. What an engine says of a
  // model may have lines of its own, and more of them.
  const size_t line = error.message.find('\n');
  const bool two_lines = line != std::string::npos && line == error.message.rfind('\n');
  if (line != std::string::npos &&
      (error.code == Code::kUnavailable || (error.code == Code::kUnsupported && two_lines))) {
    error.hint = std::string(trim(std::string_view(error.message).substr(line + 1)));
    error.message.resize(line);
  }
  if (error.message.empty()) {
    error.message =
        format("{} failed without a message (code {})", backend, static_cast<int>(code));
  }
  return error;
}

Result<Json> parsed(const std::string& text, std::string_view backend, std::string_view what) {
  auto json = Json::parse(text);
  if (json) return json;
  return Error{Code::kInternal,
               format("{}: {} is no JSON: {}", backend, what, json.error().message),
               "this is a mistake in the plugin"};
}

hasten_device cpu(int threads) {
  return {.struct_size = sizeof(hasten_device), .device = {kDLCPU, 0}, .threads = threads};
}

bool complete(const hasten_backend_api& api) {
  return api.name && api.version && api.describe && api.probe && api.inspect && api.candidates &&
         api.build && api.save && api.load && api.arity && api.run && api.destroy;
}

Result<Executable> wrapped(const hasten_backend_api& api, hasten_executable* raw) {
  if (!raw) {
    return Error{Code::kInternal, format("{}: success without an executable", api.name),
                 "this is a mistake in the plugin"};
  }
  size_t n_inputs = 0, n_outputs = 0;
  if (const hasten_code code = api.arity(raw, &n_inputs, &n_outputs); code != HASTEN_OK) {
    api.destroy(raw);
    return error_of(code, "", api.name);
  }
  return Executable(api, raw);
}

}  // namespace

Result<BackendLibrary> BackendLibrary::open(const std::filesystem::path& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* reason = dlerror();
    return Error{Code::kUnavailable, valid_utf8(reason ? reason : path.string()),
                 "install the library that is named, or rebuild the plugin"};
  }
  const auto entry = reinterpret_cast<hasten_backend_entry_fn>(dlsym(handle, HASTEN_BACKEND_ENTRY));
  if (!entry) {
    return Error{Code::kInvalidArgument, path.string() + " exports no " HASTEN_BACKEND_ENTRY,
                 "it is no backend plugin of hasten"};
  }
  const hasten_backend_api* api = entry(HASTEN_ABI_MAJOR, HASTEN_ABI_MINOR);
  if (!api || api->struct_size != sizeof(hasten_backend_api)) {
    return Error{Code::kUnavailable,
                 format("{} was built for another plugin ABI than {}.{}", path.filename().string(),
                        HASTEN_ABI_MAJOR, HASTEN_ABI_MINOR),
                 "rebuild the plugin against this version's hasten/plugin.h"};
  }
  // Backends are found by the names of their files, so that nothing is loaded to look for one.
  const std::string name = api->name ? api->name : "";
  if (path.stem() != "hasten_" + name) {
    return Error{Code::kInvalidArgument,
                 format("{} calls itself '{}'", path.string(), valid_utf8(name)),
                 "the file of a plugin is hasten_NAME.so"};
  }
  if (!complete(*api)) {
    return Error{Code::kInvalidArgument, path.string() + " leaves functions of its table empty",
                 "every function of hasten_backend_api must be set"};
  }
  return BackendLibrary(*api);
}

Result<Json> BackendLibrary::describe() const {
  StringSink text;
  if (const hasten_code code = api_->describe(&text); code != HASTEN_OK) {
    return error_of(code, text.text, name());
  }
  return parsed(text.text, name(), "its description");
}

Result<Json> BackendLibrary::probe(int threads) const {
  const hasten_device device = cpu(threads);
  StringSink text;
  if (const hasten_code code = api_->probe(&device, &text); code != HASTEN_OK) {
    return error_of(code, text.text, name());
  }
  return parsed(text.text, name(), "the result of its probe");
}

Result<Json> BackendLibrary::inspect(const std::filesystem::path& model,
                                     const std::string& model_format, const Json& graph) const {
  const std::string graph_json = graph.is_object() ? graph.dump() : "{}";
  const hasten_model m{sizeof(hasten_model), model.c_str(), model_format.c_str(),
                       graph_json.c_str()};
  StringSink text, error;
  if (const hasten_code code = api_->inspect(&m, &text, &error); code != HASTEN_OK) {
    return error_of(code, error.text, name());
  }
  return parsed(text.text, name(), "the signature");
}

Result<Json> BackendLibrary::candidates(const std::filesystem::path& model,
                                        const std::string& model_format, int threads) const {
  const hasten_model m{sizeof(hasten_model), model.c_str(), model_format.c_str(), "{}"};
  const hasten_device device = cpu(threads);
  StringSink text, error;
  if (const hasten_code code = api_->candidates(&m, &device, &text, &error); code != HASTEN_OK) {
    return error_of(code, error.text, name());
  }
  return parsed(text.text, name(), "its list of candidates");
}

Result<Executable> BackendLibrary::build(const std::filesystem::path& model,
                                         const std::string& model_format, const Json& graph,
                                         const Candidate& candidate, int threads,
                                         const std::filesystem::path& work_dir) const {
  const std::string graph_json = graph.is_object() ? graph.dump() : "{}";
  const hasten_model m{sizeof(hasten_model), model.c_str(), model_format.c_str(),
                       graph_json.c_str()};
  const hasten_device device = cpu(threads);
  std::vector<hasten_option> options;
  for (const auto& [key, value] : candidate.config) options.push_back({key.c_str(), value.c_str()});
  StringSink error;
  hasten_executable* raw = nullptr;
  const hasten_code code =
      api_->build(&m, &device, options.data(), options.size(), work_dir.c_str(), &raw, &error);
  if (code != HASTEN_OK) return error_of(code, error.text, name());
  return wrapped(*api_, raw);
}

Result<Executable> BackendLibrary::load(const std::filesystem::path& dir, int threads) const {
  const hasten_device device = cpu(threads);
  StringSink error;
  hasten_executable* raw = nullptr;
  const hasten_code code = api_->load(dir.c_str(), &device, &raw, &error);
  if (code != HASTEN_OK) return error_of(code, error.text, name());
  return wrapped(*api_, raw);
}

Executable::Executable(const hasten_backend_api& api, hasten_executable* raw)
    : api_(&api), raw_(raw) {
  if (api_->arity(raw_, &n_inputs_, &n_outputs_) != HASTEN_OK) n_inputs_ = n_outputs_ = 0;
}

Executable::Executable(Executable&& other) noexcept
    : api_(other.api_),
      raw_(std::exchange(other.raw_, nullptr)),
      n_inputs_(other.n_inputs_),
      n_outputs_(other.n_outputs_) {}

Executable& Executable::operator=(Executable&& other) noexcept {
  std::swap(api_, other.api_);
  std::swap(raw_, other.raw_);
  std::swap(n_inputs_, other.n_inputs_);
  std::swap(n_outputs_, other.n_outputs_);
  return *this;
}

Executable::~Executable() {
  if (raw_) api_->destroy(raw_);
}

Status Executable::run(std::span<const DLTensor> inputs, std::span<Tensor> outputs) const {
  if (inputs.size() != n_inputs_ || outputs.size() != n_outputs_) {
    return Error{Code::kInvalidArgument,
                 format("{}: {} inputs and {} outputs, but the model has {} and {}", api_->name,
                        inputs.size(), outputs.size(), n_inputs_, n_outputs_)};
  }
  // The hot path: holders for the usual number of outputs stand on the stack.
  std::array<DLManagedTensorVersioned*, 16> few{};
  std::vector<DLManagedTensorVersioned*> many;
  if (outputs.size() > few.size()) many.resize(outputs.size());
  DLManagedTensorVersioned** raw = many.empty() ? few.data() : many.data();

  StringSink error;
  const hasten_code code =
      api_->run(raw_, inputs.data(), inputs.size(), raw, outputs.size(), &error);
  if (code != HASTEN_OK) return error_of(code, error.text, api_->name);
  // Every output is taken over even when one is bad, so that none leaks.
  std::optional<Error> bad;
  for (size_t i = 0; i < outputs.size(); ++i) {
    auto tensor = raw[i] ? Tensor::adopt(raw[i])
                         : Result<Tensor>(Error{Code::kInternal, "success without a tensor"});
    if (tensor) {
      outputs[i] = *std::move(tensor);
    } else if (!bad) {
      bad = std::move(tensor).error().within(format("{}: output {}", api_->name, i));
    }
  }
  if (bad) return *std::move(bad);
  return {};
}

Status Executable::save(const std::filesystem::path& dir) const {
  StringSink error;
  const hasten_code code = api_->save(raw_, dir.c_str(), &error);
  if (code != HASTEN_OK) return error_of(code, error.text, api_->name);
  return {};
}

}  // namespace hasten
