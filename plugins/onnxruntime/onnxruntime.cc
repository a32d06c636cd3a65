// SPDX-License-Identifier: Apache-2.0
// ONNX Runtime by its C API.
#include <hasten/plugin_denormals.hpp>
#include <hasten/plugin_onnx_payload.hpp>
#include <hasten/plugin_tensor.hpp>

#include <onnxruntime_c_api.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "library.h"

namespace hasten {
namespace {

constexpr char kName[] = "onnxruntime";

template <class T, void (*OrtApi::*Release)(T*)>
struct Releaser {
  void operator()(T* t) const { (ort->*Release)(t); }
};
template <class T, void (*OrtApi::*Release)(T*)>
using Owned = std::unique_ptr<T, Releaser<T, Release>>;
using OwnedSession = Owned<OrtSession, &OrtApi::ReleaseSession>;
using OwnedSettings = Owned<OrtSessionOptions, &OrtApi::ReleaseSessionOptions>;
using OwnedShape = Owned<OrtTensorTypeAndShapeInfo, &OrtApi::ReleaseTensorTypeAndShapeInfo>;

// Of one call: every OrtValue that was made is released, also after a failure.
class Values {
 public:
  explicit Values(size_t size) : values_(size) {}
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;
  ~Values() {
    for (OrtValue* value : values_) {
      if (value) ort->ReleaseValue(value);
    }
  }
  OrtValue*& operator[](size_t i) { return values_[i]; }
  OrtValue** data() { return values_.data(); }

 private:
  SmallArray<OrtValue*> values_;
};

// An output in ONNX Runtime's memory, in one allocation with its shape and strides.
// The value keeps its allocator, so it outlives the session.
struct ValueHolder {
  DLManagedTensorVersioned managed;
  OrtValue* value;

  static OwnedTensor make(OrtValue*& value, DLDataType dtype, void* data, const OwnedShape& info,
                          size_t rank) {
    auto* block =
        static_cast<std::byte*>(::operator new(sizeof(ValueHolder) + 2 * rank * sizeof(int64_t)));
    auto* holder = new (block) ValueHolder{};
    auto* shape = reinterpret_cast<int64_t*>(block + sizeof(ValueHolder));
    OrtStatus* failure = ort->GetDimensions(info.get(), shape, rank);
    if (failure) {
      ::operator delete(block);
      check(failure, HASTEN_RUN_FAILED, kName);
    }
    write_compact_strides({shape, rank}, shape + rank);
    holder->value = std::exchange(value, nullptr);
    holder->managed.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
    holder->managed.manager_ctx = holder;
    holder->managed.deleter = [](DLManagedTensorVersioned* self) {
      auto* mine = static_cast<ValueHolder*>(self->manager_ctx);
      ort->ReleaseValue(mine->value);
      ::operator delete(mine);
    };
    holder->managed.dl_tensor = {.data = data,
                                 .device = {kDLCPU, 0},
                                 .ndim = static_cast<int32_t>(rank),
                                 .dtype = dtype,
                                 .shape = shape,
                                 .strides = shape + rank,
                                 .byte_offset = 0};
    return OwnedTensor(&holder->managed);
  }
};

class OnnxRuntimeExecutable : public PluginExecutable {
 public:
  OnnxRuntimeExecutable(const std::string& path, const Options& options, int device_threads)
      : library_(Library::get()),
        source_(path),
        options_(options),
        denormals_as_zero_(options.flag("denormals_as_zero")) {
    read_ports();
    const OwnedSettings settings = settings_for(options, device_threads);
    const KeepFloatMode restored_afterwards;
    OrtSession* session = nullptr;
    check(ort->CreateSession(library_.env, path.c_str(), settings.get(), &session),
          HASTEN_BUILD_FAILED, path);
    session_.reset(session);
    check_counts();
  }

  std::pair<size_t, size_t> arity() override { return {inputs_.size(), outputs_.size()}; }
  void save(const std::string& dir) override { source_.save(dir, options_); }

  void run(std::span<const DLTensor> inputs, std::span<OwnedTensor> outputs) override {
    check_inputs(inputs_, inputs, outputs_.size(), outputs.size());
    Values values(inputs.size()), results(outputs.size());
    SmallArray<OwnedTensor> scratch(inputs.size());
    SmallArray<Extent> extents(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      extents[i] = {static_cast<std::byte*>(compact_data(inputs[i], scratch[i])),
                    bytes_of(inputs[i])};
      values[i] = wrap(inputs[i], extents[i], input_types_[i]);
    }
    execute(values.data(), results.data());
    for (size_t i = 0; i < outputs.size(); ++i) {
      outputs[i] = hand_over(results[i], outputs_[i].dtype, extents);
    }
  }

 private:
  struct Extent {
    std::byte* begin = nullptr;
    size_t size = 0;
    bool holds(const void* address) const {
      return static_cast<size_t>(static_cast<const std::byte*>(address) - begin) < size;
    }
  };

  static OwnedSettings settings_for(const Options& options, int device_threads) {
    OrtSessionOptions* made = nullptr;
    check(ort->CreateSessionOptions(&made), HASTEN_INTERNAL, kName);
    OwnedSettings settings(made);
    const auto set = [](OrtStatus* status) { check(status, HASTEN_BUILD_FAILED, kName); };
    const auto entry = [&](const char* key, bool value) {
      set(ort->AddSessionConfigEntry(made, key, value ? "1" : "0"));
    };
    const int threads = options.integer("threads") ? options.integer("threads") : device_threads;
    const bool parallel = options.text("execution") == "parallel";
    set(ort->SetIntraOpNumThreads(made, threads));
    set(ort->SetInterOpNumThreads(made, parallel ? threads : 1));
    set(ort->SetSessionExecutionMode(made, parallel ? ORT_PARALLEL : ORT_SEQUENTIAL));
    const std::string& graph = options.text("graph");
    set(ort->SetSessionGraphOptimizationLevel(made, graph == "disable"    ? ORT_DISABLE_ALL
                                                    : graph == "basic"    ? ORT_ENABLE_BASIC
                                                    : graph == "extended" ? ORT_ENABLE_EXTENDED
                                                                          : ORT_ENABLE_ALL));
    set(options.flag("arena") ? ort->EnableCpuMemArena(made) : ort->DisableCpuMemArena(made));
    set(options.flag("mem_pattern") ? ort->EnableMemPattern(made) : ort->DisableMemPattern(made));
    entry("session.intra_op.allow_spinning", options.flag("spinning"));
    entry("session.inter_op.allow_spinning", options.flag("spinning"));
    entry("session.set_denormal_as_zero", options.flag("denormals_as_zero"));
    return settings;
  }

  void read_ports() {
    const OnnxDeclaration& file = source_.file();
    inputs_ = onnx_ports(file.inputs, "input", source_.path());
    outputs_ = onnx_ports(file.outputs, "output", source_.path());
    for (const OnnxValue& value : file.inputs) {
      input_names_.push_back(value.name.c_str());
      input_types_.push_back(static_cast<ONNXTensorElementDataType>(value.element_type));
    }
    for (const OnnxValue& value : file.outputs) output_names_.push_back(value.name.c_str());
  }

  void check_counts() const {
    size_t n_inputs = 0, n_outputs = 0;
    check(ort->SessionGetInputCount(session_.get(), &n_inputs), HASTEN_INTERNAL, kName);
    check(ort->SessionGetOutputCount(session_.get(), &n_outputs), HASTEN_INTERNAL, kName);
    if (n_inputs != inputs_.size() || n_outputs != outputs_.size()) {
      throw PluginError(HASTEN_BUILD_FAILED,
                        source_.path() + ": ONNX Runtime sees other inputs than the file lists");
    }
  }

  OrtValue* wrap(const DLTensor& t, const Extent& extent, ONNXTensorElementDataType type) const {
    static std::byte nothing;  // An empty tensor may come without memory.
    OrtValue* value = nullptr;
    check(ort->CreateTensorWithDataAsOrtValue(library_.memory,
                                              extent.begin ? extent.begin : &nothing, extent.size,
                                              t.shape, static_cast<size_t>(t.ndim), type, &value),
          HASTEN_RUN_FAILED, kName);
    return value;
  }

  void execute(OrtValue* const* values, OrtValue** results) const {
    std::optional<KeepFloatMode> mode;
    if (denormals_as_zero_) mode.emplace().denormals_as_zero();
    OrtStatus* status =
        ort->Run(session_.get(), nullptr, input_names_.data(), values, input_names_.size(),
                 output_names_.data(), output_names_.size(), results);
    if (!status) return;
    const bool callers_fault = ort->GetErrorCode(status) == ORT_INVALID_ARGUMENT;
    check(status, callers_fault ? HASTEN_INVALID_ARGUMENT : HASTEN_RUN_FAILED, kName);
  }

  static OwnedTensor hand_over(OrtValue*& value, DLDataType dtype, SmallArray<Extent>& inputs) {
    OrtTensorTypeAndShapeInfo* raw = nullptr;
    check(ort->GetTensorTypeAndShape(value, &raw), HASTEN_RUN_FAILED, kName);
    const OwnedShape info(raw);
    size_t rank = 0;
    void* data = nullptr;
    check(ort->GetDimensionsCount(raw, &rank), HASTEN_RUN_FAILED, kName);
    check(ort->GetTensorMutableData(value, &data), HASTEN_RUN_FAILED, kName);
    OwnedTensor made = ValueHolder::make(value, dtype, data, info, rank);
    const DLTensor& view = made->dl_tensor;
    // A graph that returns its own input gets the caller's memory back.
    const bool aliased = std::any_of(inputs.begin(), inputs.end(),
                                     [&](const Extent& input) { return input.holds(data); });
    if (!aliased || bytes_of(view) == 0) return made;
    OwnedTensor copy = make_owned(dtype, shape_of(view));
    copy_compact(view, static_cast<std::byte*>(copy->dl_tensor.data));
    return copy;
  }

  const Library& library_;
  OnnxSource source_;
  Options options_;
  const bool denormals_as_zero_;
  OwnedSession session_;
  std::vector<PortSpec> inputs_, outputs_;
  std::vector<ONNXTensorElementDataType> input_types_;   // The numbers are ONNX's own.
  std::vector<const char*> input_names_, output_names_;  // In source_.
};

class OnnxRuntimeBackend : public OnnxBackend<OnnxRuntimeExecutable> {
 public:
  OnnxRuntimeBackend() : OnnxBackend(kName) {}

  const Description& describe() override {
    static const Description description{
        .title = "ONNX Runtime, CPU execution provider",
        .formats = {"onnx"},
        .inspects = {"onnx"},
        .options = {
            {"threads", "int", "0", "threads of one call; 0: all that the process may use"},
            {"graph",
             "enum",
             "all",
             "how far the graph is optimised",
             {"disable", "basic", "extended", "all"}},
            {"execution",
             "enum",
             "sequential",
             "nodes one by one, or side by side",
             {"sequential", "parallel"}},
            {"spinning", "bool", "true", "idle threads spin: faster alone, slower beside others"},
            {"arena", "bool", "true", "keep freed memory for the next call"},
            {"mem_pattern", "bool", "true", "plan the memory of a call from the last one"},
            {"denormals_as_zero", "bool", "false", "treat denormal numbers as zero"}}};
    return description;
  }

  std::string probe(const hasten_device& device) override {
    expect_cpu(device);
    const Library& library = Library::get();
    return "{\"library_version\":" + plugin_detail::quoted(library.version) +
           ",\"library\":" + plugin_detail::quoted(library.path) + "}";
  }

  std::vector<ConfigProposal> candidates(const hasten_model& model,
                                         const hasten_device& device) override {
    std::vector<ConfigProposal> out;
    if (std::string_view(model.format) == "onnx") {
      out = {{"baseline", {}}, {"oracle", {{"graph", "disable"}}}};
    } else {
      out = {{"default", {}}};
    }
    // Full optimisation is not always the fastest, nor are all threads for a small
    // model or on a CPU whose threads share cores.
    out.push_back({"default", {{"graph", "basic"}}});
    if (device.threads > 1) out.push_back({"default", {{"threads", "1"}}});
    if (device.threads >= 4) {
      out.push_back({"default", {{"threads", std::to_string(device.threads / 2)}}});
    }
    // Spinning costs nothing on a quiet machine, so a measurement there cannot
    // show what it costs on a busy one.
    out.push_back({"extra", {{"spinning", "false"}}});
    out.push_back({"extra", {{"graph", "extended"}}});
    if (device.threads > 1) out.push_back({"extra", {{"execution", "parallel"}}});
    out.push_back({"extra", {{"arena", "false"}}});
    out.push_back({"extra", {{"mem_pattern", "false"}}});
    out.push_back({"extra", {{"denormals_as_zero", "true"}}});
    return out;
  }
};

}  // namespace
}  // namespace hasten

HASTEN_EXPORT_BACKEND(hasten::OnnxRuntimeBackend, "onnxruntime", "0.1.0",
                      HASTEN_TRAIT_CONCURRENT_RUN)
