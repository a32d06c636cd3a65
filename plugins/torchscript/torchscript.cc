// SPDX-License-Identifier: Apache-2.0
// TorchScript by libtorch. No other source file of this plugin sees torch: its headers cost ten
// seconds.

// Before torch, which declares a std::quoted that plugin.hpp would find.
#include <hasten/plugin.hpp>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>
#include <torch/headeronly/version.h>

#include <hasten/plugin_denormals.hpp>
#include <hasten/plugin_torch.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph_inputs.h"
#include "options.h"
#include "payload.h"
#include "results.h"

namespace hasten {
namespace {

using c10::IValue;
using torch::jit::Module;

Module read_module(const std::string& path) {
  return with_torch(HASTEN_INVALID_ARGUMENT, path + " is not a readable TorchScript file",
                    [&] { return torch::jit::load(path, at::kCPU); });
}

bool is_tensor(const c10::TypePtr& type) {
  if (type->kind() == c10::TypeKind::TensorType) return true;
  const auto optional = type->cast<c10::OptionalType>();
  return optional && is_tensor(optional->getElementType());
}

// The tensors among the arguments of forward(), by position. What is no tensor keeps its default.
std::vector<size_t> tensor_arguments(const c10::FunctionSchema& schema) {
  std::vector<size_t> found;
  for (size_t i = 1; i < schema.arguments().size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    if (is_tensor(argument.type())) {
      found.push_back(i);
    } else if (!argument.default_value()) {
      throw PluginError(HASTEN_UNSUPPORTED, "input '" + argument.name() + "' is of type " +
                                                argument.type()->annotation_str() +
                                                ", not a tensor, and has no default");
    }
  }
  return found;
}

bool narrow(at::ScalarType type) {
  return type == at::kFloat || type == at::kHalf || type == at::kBFloat16;
}
at::Tensor widened(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  if (narrow(tensor.scalar_type())) return tensor.to(at::kDouble);
  return tensor.scalar_type() == at::kComplexFloat ? tensor.to(at::kComplexDouble) : tensor;
}

// Constants of the graph, and dtypes that it names, in double.
void widen_block(torch::jit::Block* block) {
  for (torch::jit::Node* node : block->nodes()) {
    for (torch::jit::Block* inner : node->blocks()) widen_block(inner);
    if (node->kind() == c10::prim::Constant && node->hasAttribute(c10::attr::value) &&
        node->kindOf(c10::attr::value) == torch::jit::AttributeKind::t) {
      node->t_(c10::attr::value, widened(node->t(c10::attr::value)));
      continue;
    }
    const c10::FunctionSchema* schema = node->maybeSchema();
    if (!schema) continue;
    for (size_t i = 0; i < node->inputs().size() && i < schema->arguments().size(); ++i) {
      const auto number = torch::jit::toIValue(node->input(i));
      if (schema->arguments()[i].name() != "dtype" || !number || !number->isInt()) continue;
      if (!narrow(static_cast<at::ScalarType>(number->toInt()))) continue;
      torch::jit::WithInsertPoint before(node);
      node->replaceInput(i, node->owningGraph()->insertConstant(static_cast<int>(at::kDouble)));
    }
  }
}

void widen_module(Module& module) {
  for (const Module& part : module.modules()) {
    for (const auto& attribute : part.named_attributes(/*recurse=*/false)) {
      if (attribute.value.isTensor()) {
        part._ivalue()->setAttr(attribute.name, widened(attribute.value.toTensor()));
      }
    }
  }
  const auto graph = module.get_method("forward").graph();
  torch::jit::Inline(*graph);
  widen_block(graph->block());
}

class TorchScriptExecutable : public PluginExecutable {
 public:
  TorchScriptExecutable(const std::string& path, const Options& options,
                        std::vector<GraphInput> graph, int device_threads)
      : path_(path),
        options_(options),
        graph_(std::move(graph)),
        threads_(options.integer("threads") ? options.integer("threads") : device_threads),
        eager_(options.text("mode") == "eager"),
        double_(options.text("precision") == "float64"),
        channels_last_(options.text("layout") == "channels_last"),
        denormals_as_zero_(options.flag("denormals_as_zero")) {
    use_threads(threads_);
    const c10::InferenceMode inference;
    Module module = prepare(read_module(path));
    method_.emplace(module.get_method("forward"));
    bind_inputs();
    if (denormals_as_zero_) flush_in_every_thread();
    count_outputs(module);
  }

  std::pair<size_t, size_t> arity() override { return {positions_.size(), n_outputs_}; }
  const std::vector<std::string>& output_names() const { return output_names_; }
  void save(const std::string& dir) override { save_payload(dir, path_, options_, graph_); }

  void run(std::span<const DLTensor> inputs, std::span<OwnedTensor> outputs) override {
    check(inputs, outputs.size());
    use_threads(threads_);
    std::optional<KeepFloatMode> mode;
    if (denormals_as_zero_) mode.emplace().denormals_as_zero();
    with_torch(HASTEN_RUN_FAILED, kTorchScript, [&] {
      const c10::InferenceMode inference;
      std::vector<at::Tensor> tensors;
      tensors.reserve(inputs.size());
      for (const DLTensor& input : inputs) tensors.push_back(prepared(borrow(input)));
      Flattener results;
      results.add(call(*method_, tensors));
      if (results.tensors.size() != n_outputs_ || results.keys != keys_) {
        throw PluginError(HASTEN_RUN_FAILED, "this call gave other outputs than were counted: " +
                                                 std::to_string(results.tensors.size()) +
                                                 " instead of " + std::to_string(n_outputs_));
      }
      for (size_t i = 0; i < outputs.size(); ++i) {
        at::Tensor& result = results.tensors[i];
        // Eager gives a view of its input where the model returns one; the others must outlive it.
        if (!eager_ && lies_in(result, inputs)) result = result.clone();
        outputs[i] = hand_over(std::move(result));
      }
    });
  }

 private:
  Module prepare(Module module) {
    if (module.hasattr("training") && module.is_training()) {
      throw PluginError(HASTEN_UNSUPPORTED,
                        "the model is in training mode; call model.eval() before it is saved");
    }
    return with_torch(HASTEN_BUILD_FAILED, kTorchScript, [&] {
      if (double_) widen_module(module);
      if (channels_last_) relay_weights(module);
      if (options_.text("mode") != "frozen") return module;
      Module frozen = torch::jit::freeze(module, std::nullopt, /*optimize_numerics=*/!double_);
      return double_ ? frozen : torch::jit::optimize_for_inference(frozen);
    });
  }

  static void relay_weights(Module& module) {
    for (const Module& part : module.modules()) {
      for (const auto& attribute : part.named_attributes(/*recurse=*/false)) {
        if (!attribute.value.isTensor() || attribute.value.toTensor().dim() != 4) continue;
        part._ivalue()->setAttr(
            attribute.name, attribute.value.toTensor().contiguous(at::MemoryFormat::ChannelsLast));
      }
    }
  }

  // Worker threads keep the mode; the calling thread gets it for each call.
  void flush_in_every_thread() const {
    const KeepFloatMode caller;
    at::parallel_for(0, threads_, 1,
                     [](int64_t, int64_t) { at::globalContext().setFlushDenormal(true); });
  }

  void bind_inputs() {
    const c10::FunctionSchema& schema = method_->function().getSchema();
    const std::vector<size_t> tensors = tensor_arguments(schema);
    for (const c10::Argument& argument : schema.arguments()) {
      defaults_.push_back(argument.default_value().value_or(IValue()));
    }
    if (graph_.empty()) {
      positions_ = tensors;
      return;
    }
    for (const GraphInput& input : graph_) {
      const TorchType* type = torch_type(std::string_view(input.dtype));
      if (!type) throw PluginError(HASTEN_UNSUPPORTED, "torch has no dtype " + input.dtype);
      ports_.push_back({.name = input.name,
                        .dtype = type->dlpack,
                        .shape = std::vector<int64_t>(input.smallest.size(), -1)});
      for (const size_t position : tensors) {
        if (schema.arguments()[position].name() == input.name) positions_.push_back(position);
      }
    }
    // Other names than the model's: by order.
    if (positions_.size() == graph_.size()) return;
    if (graph_.size() > tensors.size()) {
      throw PluginError(HASTEN_INVALID_ARGUMENT, std::to_string(graph_.size()) +
                                                     " inputs were recorded, the model takes " +
                                                     std::to_string(tensors.size()));
    }
    positions_.assign(tensors.begin(), tensors.begin() + static_cast<long>(graph_.size()));
  }

  void count_outputs(const Module& module) {
    const auto& returns = method_->function().getSchema().returns();
    if (auto names = names_of(returns.at(0).type())) {
      n_outputs_ = names->size();
      output_names_ = std::move(*names);
      return;
    }
    if (graph_.empty()) {
      throw PluginError(HASTEN_UNSUPPORTED, "how many outputs there are in a " +
                                                returns.at(0).type()->annotation_str() +
                                                " shows in a call only, and no inputs are known");
    }
    // A copy is called: the model may keep state.
    with_torch(HASTEN_UNSUPPORTED, "a trial call to count the outputs", [&] {
      std::vector<at::Tensor> zeros;
      for (const GraphInput& input : graph_) {
        zeros.push_back(
            prepared(at::zeros(input.smallest, torch_type(std::string_view(input.dtype))->scalar)));
      }
      const IValue value = call(module.deepcopy().get_method("forward"), zeros);
      Flattener results;
      results.add(value);
      n_outputs_ = results.tensors.size();
      keys_ = results.keys;
      output_names_ = names_in(value);
    });
  }

  void check(std::span<const DLTensor> inputs, size_t n_outputs) const {
    if (!ports_.empty()) return check_inputs(ports_, inputs, n_outputs_, n_outputs);
    if (inputs.size() == positions_.size() && n_outputs == n_outputs_) return;
    throw PluginError(HASTEN_INVALID_ARGUMENT, "takes " + std::to_string(positions_.size()) +
                                                   " inputs, not " + std::to_string(inputs.size()));
  }

  at::Tensor prepared(at::Tensor tensor) const {
    if (double_) tensor = widened(tensor);
    if (channels_last_ && tensor.dim() == 4 && tensor.is_floating_point()) {
      tensor = tensor.contiguous(at::MemoryFormat::ChannelsLast);
    }
    return tensor;
  }

  IValue call(torch::jit::Method method, const std::vector<at::Tensor>& tensors) const {
    const torch::jit::GraphOptimizerEnabledGuard optimised(!eager_);
    std::vector<IValue> stack(defaults_.begin() + 1, defaults_.end());  // Without self.
    for (size_t i = 0; i < tensors.size(); ++i) stack[positions_[i] - 1] = tensors[i];
    return method(std::move(stack));
  }

  std::string path_;
  Options options_;
  std::vector<GraphInput> graph_;
  int threads_;
  bool eager_, double_, channels_last_, denormals_as_zero_;
  std::optional<torch::jit::Method> method_;
  std::vector<PortSpec> ports_;    // Of the graph; any size of every axis.
  std::vector<IValue> defaults_;   // Per argument of forward(), self first.
  std::vector<size_t> positions_;  // Of the inputs among the arguments.
  size_t n_outputs_ = 0;
  std::vector<std::string> output_names_;
  std::string keys_;
};

class TorchScriptBackend : public PluginBackend {
 public:
  const Description& describe() override { return torchscript_description(); }

  std::string probe(const hasten_device&) override {
    return "{\"library_version\":" + plugin_detail::quoted(TORCH_VERSION) + "}";
  }

  std::string inspect(const hasten_model& model) override {
    expect_format(model);
    const Module module = read_module(model.path);
    const c10::FunctionSchema& schema = module.get_method("forward").function().getSchema();
    std::string inputs, outputs;
    for (const size_t position : tensor_arguments(schema)) {
      const c10::Argument& argument = schema.arguments()[position];
      inputs += (inputs.empty() ? "" : ",") +
                ("{\"name\":" + plugin_detail::quoted(argument.name())) +
                (argument.default_value() ? ",\"optional\":true}" : "}");
    }
    for (const std::string& name : output_names(model, schema)) {
      outputs += (outputs.empty() ? "" : ",") + ("{\"name\":" + plugin_detail::quoted(name)) + "}";
    }
    return "{\"inputs\":[" + inputs + "],\"outputs\":[" + outputs + "]}";
  }

  std::vector<ConfigProposal> candidates(const hasten_model& model, const hasten_device&) override {
    return torchscript_candidates(model.format);
  }

  std::unique_ptr<PluginExecutable> build(const hasten_model& model, const hasten_device& device,
                                          const Options& options, const std::string&) override {
    expect_format(model);
    return std::make_unique<TorchScriptExecutable>(model.path, options,
                                                   graph_inputs(model.graph_json), device.threads);
  }

  std::unique_ptr<PluginExecutable> load(const std::string& dir,
                                         const hasten_device& device) override {
    const Payload payload = read_payload(dir, describe().options);
    return std::make_unique<TorchScriptExecutable>(payload.model, payload.options, payload.graph,
                                                   device.threads);
  }

 private:
  // Of a list or a dictionary only a call can tell, and for that inputs have to be known.
  std::vector<std::string> output_names(const hasten_model& model,
                                        const c10::FunctionSchema& schema) {
    if (auto names = names_of(schema.returns().at(0).type())) return *names;
    std::vector<GraphInput> graph = graph_inputs(model.graph_json);
    if (graph.empty()) return {};
    const hasten_option mode{"mode", "eager"};
    const Options eager(describe().options, {&mode, 1}, kTorchScript);
    return TorchScriptExecutable(model.path, eager, std::move(graph), 1).output_names();
  }

  static void expect_format(const hasten_model& model) {
    if (std::string_view(model.format) == kTorchScript) return;
    throw PluginError(HASTEN_UNSUPPORTED, std::string("takes torchscript, not ") + model.format);
  }
};

}  // namespace
}  // namespace hasten

HASTEN_EXPORT_BACKEND(hasten::TorchScriptBackend, "torchscript", "0.1.0", 0)
