// SPDX-License-Identifier: Apache-2.0
// OpenVINO on the CPU, by its C++ API.
#include <hasten/plugin_denormals.hpp>
#include <hasten/plugin_onnx_payload.hpp>
#include <hasten/plugin_tensor.hpp>

#include <openvino/core/version.hpp>
#include <openvino/runtime/core.hpp>
#include <openvino/runtime/intel_cpu/properties.hpp>
#include <openvino/runtime/properties.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hasten {
namespace {

constexpr char kName[] = "openvino";

// The newest operator set of onnx 1.23, which this plugin was written against. OpenVINO
// reads a newer model by the newest rules it has, without a word.
constexpr int64_t kNewestOpset = 28;

// onnx.TensorProto.DataType
constexpr int kUInt32 = 12, kBFloat16 = 16;

// Never destroyed: its thread pools may be at work when the process ends.
ov::Core& core() {
  static auto* const made = new ov::Core;
  return *made;
}

// OpenVINO's text on one line, without the lines that only tell where in its own source.
std::string reason(const std::exception& e) {
  std::string out;
  std::string_view rest = e.what();
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest = end == rest.npos ? std::string_view() : rest.substr(end + 1);
    if (line.empty() || line.starts_with("Exception from ") ||
        line.starts_with("Check 'false' failed at ") || line.starts_with("FrontEnd API failed")) {
      continue;
    }
    if (!out.empty()) out += out.back() == ':' ? " " : "; ";
    out += line;
  }
  return out;
}

// OpenVINO's exceptions as ours; what is ours already, and bad_alloc, pass.
template <class F>
auto translated(hasten_code code, const std::string& what, F&& body) {
  try {
    return body();
  } catch (const PluginError&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& e) {
    throw PluginError(code, what + ": " + reason(e));
  }
}

ov::element::Type element_type(DLDataType type) {
  const int bits = type.bits;
  switch (type.code) {
    case kDLBool:
      return ov::element::boolean;
    case kDLBfloat:
      return ov::element::bf16;
    case kDLFloat:
      return bits == 16 ? ov::element::f16 : bits == 32 ? ov::element::f32 : ov::element::f64;
    case kDLInt:
      return bits == 8    ? ov::element::i8
             : bits == 16 ? ov::element::i16
             : bits == 32 ? ov::element::i32
                          : ov::element::i64;
    case kDLUInt:
      return bits == 8    ? ov::element::u8
             : bits == 16 ? ov::element::u16
             : bits == 32 ? ov::element::u32
                          : ov::element::u64;
    default:
      return ov::element::dynamic;  // Complex: OpenVINO has none.
  }
}

ov::AnyMap settings_for(const Options& options, int device_threads) {
  const int threads = options.integer("threads") ? options.integer("threads") : device_threads;
  ov::AnyMap out{ov::inference_num_threads(threads)};
  const std::string& hint = options.text("hint");
  using Mode = ov::hint::PerformanceMode;
  if (hint != "none") {
    out.insert(ov::hint::performance_mode(hint == "latency" ? Mode::LATENCY : Mode::THROUGHPUT));
  }
  const std::string& precision = options.text("precision");
  if (precision == "f32") {
    out.insert(ov::hint::inference_precision(ov::element::f32));
    // On by default for compressed weights, and lossy.
    out.insert(ov::hint::dynamic_quantization_group_size(0));
  } else if (precision != "auto") {
    out.insert(
        ov::hint::inference_precision(precision == "bf16" ? ov::element::bf16 : ov::element::f16));
  }
  if (const int streams = options.integer("streams")) out.insert(ov::num_streams(streams));
  if (options.has("pinning")) out.insert(ov::hint::enable_cpu_pinning(options.flag("pinning")));
  if (options.flag("denormals_as_zero")) {
    out.insert(ov::intel_cpu::denormals_optimization(true));
  }
  return out;
}

// A request of OpenVINO's with the inputs it is bound to. A call has one for itself.
struct Request {
  struct Bound {
    ov::Shape shape;
    ov::Tensor own;              // For what is copied.
    const void* data = nullptr;  // What the request reads.
  };
  ov::InferRequest request;
  std::vector<Bound> inputs;
};

class RequestPool {
 public:
  explicit RequestPool(ov::CompiledModel model) : model_(std::move(model)) {}

  std::unique_ptr<Request> take(size_t n_inputs) {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        std::unique_ptr<Request> out = std::move(free_.back());
        free_.pop_back();
        return out;
      }
    }
    auto made = std::make_unique<Request>();
    made->request = model_.create_infer_request();
    made->inputs.resize(n_inputs);
    return made;
  }
  // Not after a failure: such a request is dropped.
  void give_back(std::unique_ptr<Request> request) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(request));
  }

 private:
  ov::CompiledModel model_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Request>> free_;
};

class OpenVinoExecutable : public PluginExecutable {
 public:
  OpenVinoExecutable(const std::string& path, const Options& options, int device_threads)
      : source_(path),
        options_(options),
        denormals_as_zero_(options.flag("denormals_as_zero")),
        inputs_(onnx_ports(source_.file().inputs, "input", path)),
        outputs_(onnx_ports(source_.file().outputs, "output", path)) {
    refuse_what_would_go_wrong();
    const auto model =
        translated(HASTEN_UNSUPPORTED, path, [&] { return core().read_model(path); });
    const KeepFloatMode restored_afterwards;
    const ov::CompiledModel compiled = translated(HASTEN_BUILD_FAILED, path, [&] {
      return core().compile_model(model, "CPU", settings_for(options, device_threads));
    });
    input_index_ = match(inputs_, compiled.inputs(), "input");
    output_index_ = match(outputs_, compiled.outputs(), "output");
    pool_ = std::make_unique<RequestPool>(compiled);
  }

  std::pair<size_t, size_t> arity() override { return {inputs_.size(), outputs_.size()}; }
  void save(const std::string& dir) override { source_.save(dir, options_); }

  void run(std::span<const DLTensor> inputs, std::span<OwnedTensor> outputs) override {
    check_inputs(inputs_, inputs, outputs_.size(), outputs.size());
    translated(HASTEN_RUN_FAILED, kName, [&] {
      std::unique_ptr<Request> call = pool_->take(inputs.size());
      for (size_t i = 0; i < inputs.size(); ++i) bind(*call, i, inputs[i]);
      infer(call->request);
      for (size_t i = 0; i < outputs.size(); ++i) outputs[i] = copy_out(call->request, i);
      pool_->give_back(std::move(call));
    });
  }

 private:
  void refuse_what_would_go_wrong() const {
    const OnnxDeclaration& file = source_.file();
    if (file.opset > kNewestOpset) {
      throw PluginError(HASTEN_UNSUPPORTED, source_.path() + ": opset " +
                                                std::to_string(file.opset) + " is newer than " +
                                                std::to_string(kNewestOpset));
    }
    // Read as if the integers were the numbers (bfloat16), or the bytes of half as many
    // (uint32).
    for (const int type : {kBFloat16, kUInt32}) {
      if (const auto found = file.in_integers.find(type); found != file.in_integers.end()) {
        throw PluginError(HASTEN_UNSUPPORTED, source_.path() + ": OpenVINO misreads '" +
                                                  found->second + "', a " + onnx_dtype(type).name +
                                                  " tensor that is not stored as raw bytes");
      }
    }
    for (const PortSpec& input : inputs_) {
      if (input.any_rank) {
        throw PluginError(HASTEN_UNSUPPORTED,
                          source_.path() + ": OpenVINO's CPU device needs to know the rank of '" +
                              input.name + "'");
      }
    }
  }

  // Where OpenVINO has each port of the file. It keeps the order of the file today, but
  // promises nothing; names are what the two have in common.
  std::vector<size_t> match(const std::vector<PortSpec>& ports,
                            const std::vector<ov::Output<const ov::Node>>& found,
                            const char* what) const {
    std::vector<size_t> index;
    for (const PortSpec& port : ports) {
      const auto at = std::find_if(found.begin(), found.end(), [&](const auto& candidate) {
        return candidate.get_names().count(port.name) > 0;
      });
      const std::string name = source_.path() + ": " + what + " '" + port.name + "' ";
      if (at == found.end()) {
        throw PluginError(HASTEN_BUILD_FAILED, name + "was lost in OpenVINO's conversion");
      }
      if (at->get_element_type() != element_type(port.dtype)) {
        throw PluginError(HASTEN_UNSUPPORTED, name + "is " + dtype_text(port.dtype) +
                                                  ", but OpenVINO makes it " +
                                                  at->get_element_type().get_type_name());
      }
      index.push_back(static_cast<size_t>(at - found.begin()));
    }
    return index;
  }

  // Small inputs are copied into the request's own tensor: binding another address
  // costs OpenVINO 1.5 to 2 microseconds, copying 16 KiB less than one.
  static constexpr size_t kCopiedUpTo = 16 << 10;

  void bind(Request& call, size_t i, const DLTensor& t) const {
    Request::Bound& bound = call.inputs[i];
    const std::span<const int64_t> sizes = shape_of(t);
    const bool same_shape =
        bound.data && std::equal(sizes.begin(), sizes.end(), bound.shape.begin(), bound.shape.end(),
                                 [](int64_t a, size_t b) { return static_cast<size_t>(a) == b; });
    if (!same_shape) {
      bound.shape.assign(sizes.begin(), sizes.end());
      bound.data = nullptr;  // Until it is bound: what follows may throw.
    }
    const ov::element::Type type = element_type(t.dtype);
    if (bytes_of(t) <= kCopiedUpTo || !is_compact(t)) {
      if (!same_shape || !bound.own || bound.data != bound.own.data()) {
        bound.own = ov::Tensor(type, bound.shape);
        call.request.set_input_tensor(input_index_[i], bound.own);
        bound.data = bound.own.data();
      }
      copy_compact(t, static_cast<std::byte*>(bound.own.data()));
      return;
    }
    // The same address in the same shape is bound already; what lies there is read by
    // each call anew.
    const void* data = data_of(t);
    if (same_shape && bound.data == data) return;
    call.request.set_input_tensor(input_index_[i], ov::Tensor(type, bound.shape, data));
    bound.data = data;
  }

  void infer(ov::InferRequest& request) const {
    std::optional<KeepFloatMode> mode;
    if (denormals_as_zero_) mode.emplace().denormals_as_zero();
    request.infer();
  }

  // Giving OpenVINO a fresh tensor to write into is dearer than this copy, for small
  // outputs by the binding and for large ones by the new pages.
  OwnedTensor copy_out(ov::InferRequest& request, size_t i) const {
    const ov::Tensor result = request.get_output_tensor(output_index_[i]);
    const ov::Shape& shape = result.get_shape();
    SmallArray<int64_t> sizes(shape.size());
    std::copy(shape.begin(), shape.end(), sizes.begin());
    OwnedTensor out = make_owned(outputs_[i].dtype, {sizes.data(), sizes.size()});
    if (const size_t size = bytes_of(out->dl_tensor)) {
      std::memcpy(out->dl_tensor.data, std::as_const(result).data(), size);
    }
    return out;
  }

  OnnxSource source_;
  Options options_;
  const bool denormals_as_zero_;
  std::vector<PortSpec> inputs_, outputs_;
  std::vector<size_t> input_index_, output_index_;  // Of each port, in OpenVINO's order.
  std::unique_ptr<RequestPool> pool_;
};

class OpenVinoBackend : public OnnxBackend<OpenVinoExecutable> {
 public:
  OpenVinoBackend() : OnnxBackend(kName) {}

  const Description& describe() override {
    static const Description description{
        .title = "OpenVINO, CPU device",
        .formats = {"onnx"},
        .inspects = {"onnx"},
        .options = {{"threads", "int", "0", "threads of one call; 0: all that the process may use"},
                    {"hint",
                     "enum",
                     "latency",
                     "what to set streams and threads for",
                     {"latency", "throughput", "none"}},
                    {"precision",
                     "enum",
                     "f32",
                     "of the arithmetic; all but f32 are lossy",
                     {"f32", "bf16", "f16", "auto"}},
                    {"streams", "int", "0", "calls that run side by side; 0: as the hint sets it"},
                    {"pinning", "bool", "", "bind threads to CPUs; not set: OpenVINO decides"},
                    {"denormals_as_zero", "bool", "false", "treat denormal numbers as zero"}}};
    return description;
  }

  std::string probe(const hasten_device& device) override {
    expect_cpu(device);
    return translated(HASTEN_UNAVAILABLE, "OpenVINO has no CPU device here", [] {
      std::string abilities;
      for (const std::string& ability : capabilities()) {
        abilities += (abilities.empty() ? "" : ",") + plugin_detail::quoted(ability);
      }
      return "{\"library_version\":" +
             plugin_detail::quoted(ov::get_openvino_version().buildNumber) + ",\"capabilities\":[" +
             abilities + "]}";
    });
  }

  std::vector<ConfigProposal> candidates(const hasten_model&,
                                         const hasten_device& device) override {
    std::vector<ConfigProposal> out{{"default", {}}};
    // All threads do not pay for a small model.
    if (device.threads > 1) out.push_back({"default", {{"threads", "1"}}});
    // With two threads its streams have one each: the same as threads=1 for one caller.
    out.push_back({device.threads > 2 ? "default" : "extra", {{"hint", "throughput"}}});
    const std::vector<std::string> abilities = capabilities();
    for (const auto& [ability, precision] : {std::pair("BF16", "bf16"), std::pair("FP16", "f16")}) {
      if (std::find(abilities.begin(), abilities.end(), ability) != abilities.end()) {
        out.push_back({"lossy", {{"precision", precision}}});
      }
    }
    out.push_back({"extra", {{"pinning", "false"}}});
    out.push_back({"extra", {{"denormals_as_zero", "true"}}});
    return out;
  }

 private:
  static std::vector<std::string> capabilities() {
    return core().get_property("CPU", ov::device::capabilities);
  }
};

}  // namespace
}  // namespace hasten

HASTEN_EXPORT_BACKEND(hasten::OpenVinoBackend, "openvino", "0.1.0", HASTEN_TRAIT_CONCURRENT_RUN)
