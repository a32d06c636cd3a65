// SPDX-License-Identifier: Apache-2.0
#include "backend/plugin_checks.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <functional>
#include <thread>

#include "backend/own_memory.h"
#include "backend/relaid.h"
#include "backend/string_sink.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/text.h"
#include "tensor/difference.h"

namespace hasten {
namespace {

Json passed(std::string detail = "") {
  return Json::object({{"passed", true}, {"detail", std::move(detail)}});
}
Json failed(std::string detail) {
  return Json::object({{"passed", false}, {"detail", std::move(detail)}});
}
Json skipped(std::string detail) {
  return Json::object({{"skipped", true}, {"detail", std::move(detail)}});
}

bool all_identical(std::span<const Tensor> a, std::span<const Tensor> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), identical);
}

// Another dtype of the same size, so that nothing is read behind the end.
DLDataType other_dtype(DLDataType dtype) {
  dtype.code = dtype.code == kDLInt ? kDLUInt : kDLInt;
  return dtype;
}

}  // namespace

Result<Json> PluginChecks::run(const Json& request, InputSlot* slot) {
  const std::string& check = request["check"].as_string();
  if (check == "table") return table();
  if (check == "foreign_abi") return foreign_abi(request);
  if (check == "destroy_null") return destroy_null();
  if (check == "utf8") return utf8();
  if (check == "unknown_option") return unknown_option(request);
  if (check == "bad_values") return bad_values(request);

  using Check = Outcome (PluginChecks::*)(const Json&, InputSlot&);
  static const std::map<std::string, Check> with_inputs = {
      {"outputs", &PluginChecks::outputs},     {"repeat", &PluginChecks::repeat},
      {"save_load", &PluginChecks::save_load}, {"wrong_arguments", &PluginChecks::wrong_arguments},
      {"layouts", &PluginChecks::layouts},     {"empty", &PluginChecks::empty},
      {"outlives", &PluginChecks::outlives},   {"concurrent", &PluginChecks::concurrent},
      {"memory", &PluginChecks::memory}};
  const auto found = with_inputs.find(check);
  if (found == with_inputs.end() || !slot) {
    return Error{Code::kInvalidArgument, format("no check '{}', or no inputs for it", check)};
  }
  slot->restore();
  Outcome outcome = (this->*found->second)(request, *slot);
  // One that failed may have broken it: the next check gets another.
  if (!outcome || !(*outcome)["passed"].as_bool()) executable_.reset();
  return outcome;
}

Result<RawExecutable> PluginChecks::fresh_build(const Json& build, const Json& config) const {
  const std::string model = build["model"].as_string(), kind = build["format"].as_string();
  const std::string graph = build["graph"].is_object() ? build["graph"].dump() : "{}";
  const hasten_model m{sizeof(hasten_model), model.c_str(), kind.c_str(), graph.c_str()};
  const hasten_device device{sizeof(hasten_device), {kDLCPU, 0}, threads_};
  std::vector<hasten_option> options;
  for (const auto& [key, value] : config.members()) {
    options.push_back({key.c_str(), value.as_string().c_str()});
  }
  const std::string& work_dir = build["work_dir"].as_string();
  HASTEN_TRY_STATUS(make_folder(work_dir));
  StringSink error;
  hasten_executable* raw = nullptr;
  const hasten_code code = library_.api().build(&m, &device, options.data(), options.size(),
                                                work_dir.c_str(), &raw, &error);
  if (code == HASTEN_OK && raw) return RawExecutable(library_.api(), raw);
  return Error{code == HASTEN_INVALID_ARGUMENT ? Code::kInvalidArgument : Code::kBuildFailed,
               valid_utf8(error.text)};
}

Result<hasten_executable*> PluginChecks::built(const Json& request) {
  const std::string key = request["build"].dump();
  if (!executable_ || built_from_ != key) {
    executable_.reset();
    HASTEN_TRY(RawExecutable fresh, fresh_build(request["build"], request["build"]["config"]));
    executable_.emplace(std::move(fresh));
    built_from_ = key;
  }
  return executable_->get();
}

Result<PluginChecks::Answer> PluginChecks::call(hasten_executable* raw,
                                                std::span<const DLTensor> inputs) const {
  size_t n_inputs = 0, n_outputs = 0;
  if (library_.api().arity(raw, &n_inputs, &n_outputs) != HASTEN_OK) {
    return Error{Code::kInternal, "arity failed"};
  }
  std::vector<DLManagedTensorVersioned*> made(n_outputs);
  StringSink error;
  Answer answer;
  answer.code =
      library_.api().run(raw, inputs.data(), inputs.size(), made.data(), n_outputs, &error);
  answer.text = valid_utf8(error.text);
  if (answer.code != HASTEN_OK) return answer;
  for (DLManagedTensorVersioned* tensor : made) {
    if (!tensor) return Error{Code::kInternal, "an output is NULL"};
    if (tensor->dl_tensor.ndim > 0 && !tensor->dl_tensor.strides) {
      return Error{Code::kInternal, "an output has no strides"};
    }
    HASTEN_TRY(Tensor adopted, Tensor::adopt(tensor));
    answer.outputs.push_back(std::move(adopted));
  }
  return answer;
}

Result<std::vector<Tensor>> PluginChecks::right_answer(hasten_executable* raw,
                                                       InputSlot& slot) const {
  slot.restore();
  HASTEN_TRY(Answer answer, call(raw, slot.views()));
  if (answer.code != HASTEN_OK) return Error{Code::kRunFailed, "run: " + answer.text};
  return std::move(answer.outputs);
}

Result<Json> PluginChecks::table() {
  const std::string_view name = library_.name();
  const bool legal = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
  if (!legal) return failed(format("the name '{}' has other letters than [a-z0-9_-]", name));
  if (library_.version().empty()) return failed("the version is empty");
  constexpr uint32_t kKnownTraits = HASTEN_TRAIT_CONCURRENT_RUN;
  if ((library_.api().traits & ~kKnownTraits) != 0) return failed("a trait that nobody knows");
  return passed(format("{} {}", name, library_.version()));
}

Result<Json> PluginChecks::foreign_abi(const Json& request) {
  void* handle = dlopen(request["library"].as_string().c_str(), RTLD_NOW | RTLD_LOCAL);
  const auto entry =
      handle ? reinterpret_cast<hasten_backend_entry_fn>(dlsym(handle, HASTEN_BACKEND_ENTRY))
             : nullptr;
  if (!entry) return failed("the entry is gone");
  if (entry(HASTEN_ABI_MAJOR + 1, 0)) return failed("it accepts an ABI that does not exist yet");
  return passed();
}

Result<Json> PluginChecks::destroy_null() {
  library_.api().destroy(nullptr);
  return passed();
}

Result<Json> PluginChecks::utf8() {
  const hasten_backend_api& api = library_.api();
  const hasten_device device{sizeof(hasten_device), {kDLCPU, 0}, threads_};
  // A file that is not there makes every backend say something.
  const hasten_model missing{sizeof(hasten_model), "/nonexistent/\xE6\xA8\xA1", "none", "{}"};
  std::array<StringSink, 5> said;
  hasten_executable* raw = nullptr;
  (void)api.describe(&said[0]);
  (void)api.probe(&device, &said[1]);
  if (api.inspect(&missing, &said[2], &said[2]) == HASTEN_OK) {
    return failed("inspect of a file that does not exist succeeds");
  }
  if (api.build(&missing, &device, nullptr, 0, "/nonexistent", &raw, &said[3]) == HASTEN_OK) {
    return failed("build of a file that does not exist succeeds");
  }
  if (api.load("/nonexistent", &device, &raw, &said[4]) == HASTEN_OK) {
    return failed("load of a folder that does not exist succeeds");
  }
  for (const StringSink& sink : said) {
    if (sink.text.empty()) return failed("a failure without a message");
    if (valid_utf8(sink.text) != sink.text) {
      return failed("no UTF-8: " + valid_utf8(sink.text));
    }
  }
  return passed();
}

Result<Json> PluginChecks::unknown_option(const Json& request) {
  const std::string name = "no-such-option";
  auto built = fresh_build(request["build"], Json::object({{name, "1"}}));
  if (built) return failed("it was accepted");
  const std::string& message = built.error().message;
  if (built.error().code != Code::kInvalidArgument) return failed("another code: " + message);
  if (message.find(name) == std::string::npos) return failed("it is not named: " + message);
  HASTEN_TRY(const Json description, library_.describe());
  for (const Json& option : description["options"].items()) {
    if (message.find(option["name"].as_string()) == std::string::npos) {
      return failed(format("'{}' is not listed: {}", option["name"].as_string(), message));
    }
  }
  return passed();
}

Result<Json> PluginChecks::bad_values(const Json& request) {
  HASTEN_TRY(const Json description, library_.describe());
  std::vector<std::string> tried;
  for (const Json& option : description["options"].items()) {
    const std::string& name = option["name"].as_string();
    if (option["stage"].as_string() == "compile") continue;  // Judged by the compiler.
    auto built = fresh_build(request["build"], Json::object({{name, "\xE2\x9C\x97 no value"}}));
    if (built) return failed(format("'{}' accepts anything", name));
    if (built.error().code != Code::kInvalidArgument ||
        built.error().message.find(name) == std::string::npos) {
      return failed(format("'{}': {}", name, built.error().message));
    }
    tried.push_back(name);
  }
  return tried.empty() ? skipped("it has no options") : passed(join(tried, ", "));
}

Result<Json> PluginChecks::outputs(const Json& request, InputSlot& slot) {
  HASTEN_TRY(hasten_executable * raw, built(request));
  HASTEN_TRY(const std::vector<Tensor> outputs, right_answer(raw, slot));
  if (!slot.written().empty()) return failed("an input was written");
  for (size_t o = 0; o < outputs.size(); ++o) {
    for (size_t i = 0; i < slot.views().size(); ++i) {
      if (slot.overlaps(i, outputs[o])) return failed(format("output {} lies in input {}", o, i));
    }
  }
  return passed(format("{} outputs", outputs.size()));
}

Result<Json> PluginChecks::repeat(const Json& request, InputSlot& slot) {
  HASTEN_TRY(hasten_executable * raw, built(request));
  HASTEN_TRY(const std::vector<Tensor> first, right_answer(raw, slot));
  std::vector<Tensor> copies;
  for (const Tensor& output : first) copies.push_back(output.clone());
  HASTEN_TRY(const std::vector<Tensor> second, right_answer(raw, slot));
  for (size_t i = 0; i < first.size(); ++i) {
    if (overlap(first[i], second[i])) return failed("two results share their memory");
  }
  if (!all_identical(first, copies)) return failed("the first result changed in the second call");
  if (!all_identical(first, second)) return failed("two calls give two answers");
  return passed();
}

Result<Json> PluginChecks::save_load(const Json& request, InputSlot& slot) {
  const std::string dir = request["build"]["work_dir"].as_string() + "/saved";
  HASTEN_TRY_STATUS(make_folder(dir));
  HASTEN_TRY(hasten_executable * raw, built(request));
  HASTEN_TRY(const std::vector<Tensor> before, right_answer(raw, slot));
  StringSink error;
  if (library_.api().save(raw, dir.c_str(), &error) != HASTEN_OK) {
    return failed("save: " + valid_utf8(error.text));
  }
  HASTEN_TRY(const std::vector<Tensor> after, right_answer(raw, slot));
  if (!all_identical(before, after)) return failed("save changes what it computes");

  const hasten_device device{sizeof(hasten_device), {kDLCPU, 0}, threads_};
  hasten_executable* loaded = nullptr;
  if (library_.api().load(dir.c_str(), &device, &loaded, &error) != HASTEN_OK || !loaded) {
    return failed("load: " + valid_utf8(error.text));
  }
  const RawExecutable keeper(library_.api(), loaded);
  HASTEN_TRY(const std::vector<Tensor> reloaded, right_answer(loaded, slot));
  return all_identical(before, reloaded) ? passed() : failed("loaded, it computes something else");
}

Result<Json> PluginChecks::wrong_arguments(const Json& request, InputSlot& slot) {
  HASTEN_TRY(hasten_executable * raw, built(request));
  const std::vector<DLTensor> good(slot.views().begin(), slot.views().end());
  const auto refused = [&](std::span<const DLTensor> inputs) -> Result<bool> {
    HASTEN_TRY(const Answer answer, call(raw, inputs));
    return answer.code != HASTEN_OK && !answer.text.empty();
  };
  if (good.empty()) return skipped("the model has no inputs");
  std::vector<DLTensor> more = good;
  more.push_back(good[0]);
  HASTEN_TRY(const bool too_many, refused(more));
  HASTEN_TRY(const bool too_few, refused(std::span(good).first(good.size() - 1)));
  if (!too_many || !too_few)
    return failed("a wrong number of inputs is not refused with a message");
  std::vector<DLTensor> typed = good;
  typed[0].dtype = other_dtype(typed[0].dtype);
  HASTEN_TRY(const bool dtype, refused(typed));
  if (!dtype) return failed("a wrong dtype is not refused with a message");

  std::vector<DLTensor> ranked = good;
  Shape shape(good[0].shape, good[0].shape + good[0].ndim);
  shape.insert(shape.begin(), 1);
  Shape strides = compact_strides(shape);
  ranked[0].ndim += 1;
  ranked[0].shape = shape.data();
  ranked[0].strides = strides.data();
  HASTEN_TRY(const bool rank, refused(ranked));
  if (!rank) return failed("a wrong rank is not refused with a message");
  if (auto still = right_answer(raw, slot); !still) {
    return failed("afterwards it refuses good inputs: " + still.error().message);
  }
  return passed();
}

Result<Json> PluginChecks::layouts(const Json& request, InputSlot& slot) {
  HASTEN_TRY(hasten_executable * raw, built(request));
  HASTEN_TRY(const std::vector<Tensor> expected, right_answer(raw, slot));
  const auto limits = request["tolerance"].items();
  const Tolerance tolerance{limits.size() > 0 ? limits[0].as_double() : 0,
                            limits.size() > 1 ? limits[1].as_double() : 0};
  for (const Layout layout : {Layout::kReversedAxes, Layout::kGapsAndOffset}) {
    std::vector<Relaid> relaid;
    std::vector<DLTensor> views;
    for (const DLTensor& input : slot.views()) relaid.emplace_back(input, layout);
    for (const Relaid& input : relaid) views.push_back(input.view());
    HASTEN_TRY(const Answer answer, call(raw, views));
    const char* what = layout == Layout::kReversedAxes ? "transposed" : "offset and strided";
    if (answer.code != HASTEN_OK) return failed(format("{} inputs: {}", what, answer.text));
    for (size_t i = 0; i < expected.size(); ++i) {
      const Difference difference = compare(answer.outputs[i], expected[i], tolerance);
      if (!difference.mismatch.empty() || !difference.within) {
        return failed(format("{} inputs: output {} differs {}", what, i, difference.mismatch));
      }
    }
  }
  return passed();
}

Result<Json> PluginChecks::empty(const Json& request, InputSlot& slot) {
  HASTEN_TRY(hasten_executable * raw, built(request));
  std::vector<Relaid> emptied;
  std::vector<DLTensor> views;
  for (const DLTensor& input : slot.views()) emptied.push_back(Relaid::emptied(input));
  for (const Relaid& input : emptied) views.push_back(input.view());
  HASTEN_TRY(const Answer answer, call(raw, views));
  if (answer.code != HASTEN_OK && answer.text.empty()) return failed("refused without a message");
  if (auto still = right_answer(raw, slot); !still) {
    return failed("afterwards it refuses good inputs: " + still.error().message);
  }
  return passed(answer.code == HASTEN_OK ? "accepted" : "refused: " + answer.text);
}

Result<Json> PluginChecks::outlives(const Json& request, InputSlot& slot) {
  HASTEN_TRY(hasten_executable * raw, built(request));
  HASTEN_TRY(const std::vector<Tensor> outputs, right_answer(raw, slot));
  std::vector<Tensor> copies;
  for (const Tensor& output : outputs) copies.push_back(output.clone());
  executable_.reset();
  return all_identical(outputs, copies) ? passed() : failed("the result changed with destroy()");
}

Result<Json> PluginChecks::concurrent(const Json& request, InputSlot& slot) {
  if (!library_.concurrent_run()) return skipped("the plugin does not claim it");
  constexpr int kCalls = 50;
  HASTEN_TRY(hasten_executable * raw, built(request));
  HASTEN_TRY(const std::vector<Tensor> expected, right_answer(raw, slot));
  std::array<bool, 2> right = {true, true};
  const auto work = [&](bool& mine) {
    for (int i = 0; i < kCalls; ++i) {
      auto answer = call(raw, slot.views());
      mine =
          mine && answer && answer->code == HASTEN_OK && all_identical(answer->outputs, expected);
    }
  };
  { const std::jthread first(work, std::ref(right[0])), second(work, std::ref(right[1])); }
  return right[0] && right[1] ? passed() : failed("two threads get other answers than one");
}

Result<Json> PluginChecks::memory(const Json& request, InputSlot& slot) {
  constexpr int kWarmUp = 100, kCalls = 1000;
  // Arenas and caches settle in the warm-up; a leak of one small output shows above this.
  constexpr uint64_t kAllowed = 16u << 20;
  constexpr std::chrono::seconds kWarmUpTime{5}, kTime{15};  // For models that are slow.
  HASTEN_TRY(hasten_executable * raw, built(request));
  const auto call_for = [&](int most, std::chrono::nanoseconds time) -> Result<int> {
    const std::chrono::nanoseconds end = real_clock().now() + time;
    int calls = 0;
    while (calls < most && real_clock().now() < end) {
      HASTEN_TRY_STATUS(right_answer(raw, slot));
      ++calls;
    }
    return calls;
  };
  HASTEN_TRY_STATUS(call_for(kWarmUp, kWarmUpTime));
  const uint64_t before = own_memory_bytes("VmRSS").value_or(0);
  HASTEN_TRY(const int calls, call_for(kCalls, kTime));
  const uint64_t after = own_memory_bytes("VmRSS").value_or(0);
  const uint64_t growth = after > before ? after - before : 0;
  const std::string detail = format("{} more after {} calls", human_size(growth), calls);
  return growth <= kAllowed ? passed(detail) : failed(detail);
}

}  // namespace hasten
