// SPDX-License-Identifier: Apache-2.0
#include "model/graph_spec.h"

#include "base/text.h"

namespace hasten {
namespace {

// More than any framework knows; what a damaged or hostile file says stays small.
constexpr size_t kMaxRank = 64;

std::string_view to_string(AxisKind kind) {
  switch (kind) {
    case AxisKind::kBatch:
      return "batch";
    case AxisKind::kDynamic:
      return "dynamic";
    case AxisKind::kStatic:
      break;
  }
  return "static";
}

Json to_json(const std::vector<TensorSpec>& specs) {
  Json list = Json::array();
  for (const TensorSpec& spec : specs) {
    Json axes = Json::array();
    for (const Axis& axis : spec.axes) {
      Json json =
          Json::object({{"kind", to_string(axis.kind)}, {"min", axis.min}, {"max", axis.max}});
      if (axis.kind != AxisKind::kStatic) {
        json.set("multiplier", axis.multiplier).set("symbol", axis.symbol);
      }
      axes.push(std::move(json));
    }
    list.push(Json::object({{"name", spec.name},
                            {"dtype", hasten::to_string(spec.dtype)},
                            {"axes", std::move(axes)}}));
  }
  return list;
}

Result<Axis> axis_from_json(const Json& json) {
  const auto bad = [&] {
    return Error{Code::kInvalidArgument, format("{} is no axis of a graph", json.dump())};
  };
  Axis axis;
  const std::string& kind = json["kind"].as_string();
  if (kind == "batch") {
    axis.kind = AxisKind::kBatch;
  } else if (kind == "dynamic") {
    axis.kind = AxisKind::kDynamic;
  } else if (kind != "static") {
    return bad();
  }
  if (!json["min"].is_int() || !json["max"].is_int()) return bad();
  axis.min = json["min"].as_int();
  axis.max = json["max"].as_int();
  axis.multiplier = json["multiplier"].as_int(1);
  axis.symbol = json["symbol"].as_string();
  if (axis.min < 0 || axis.max < axis.min || axis.multiplier < 1 ||
      axis.multiplier > kMaxMultiplier) {
    return bad();
  }
  if (axis.kind == AxisKind::kStatic ? axis.min != axis.max : axis.symbol.empty()) return bad();
  return axis;
}

Result<std::vector<TensorSpec>> specs_from_json(const Json& json, std::string_view what) {
  std::vector<TensorSpec> specs;
  for (const Json& item : json.items()) {
    TensorSpec spec;
    spec.name = item["name"].as_string();
    const auto dtype = dtype_from_string(item["dtype"].as_string());
    const Json::Array& axes = item["axes"].items();
    if (spec.name.empty() || !dtype || !item["axes"].is_array() || axes.size() > kMaxRank) {
      return Error{Code::kInvalidArgument,
                   format("a graph has the {} {}, which is no tensor", what, item.dump())};
    }
    spec.dtype = *dtype;
    for (const Json& axis_json : axes) {
      HASTEN_TRY(Axis axis, axis_from_json(axis_json));
      spec.axes.push_back(std::move(axis));
    }
    specs.push_back(std::move(spec));
  }
  return specs;
}

}  // namespace

Json GraphSpec::to_json() const {
  return Json::object(
      {{"name", name}, {"inputs", hasten::to_json(inputs)}, {"outputs", hasten::to_json(outputs)}});
}

Result<GraphSpec> GraphSpec::from_json(const Json& json) {
  if (!json["name"].is_string() || !json["inputs"].is_array()) {
    return Error{Code::kInvalidArgument, "a graph has no name or no inputs"};
  }
  GraphSpec graph;
  graph.name = json["name"].as_string();
  HASTEN_TRY(graph.inputs, specs_from_json(json["inputs"], "input"));
  HASTEN_TRY(graph.outputs, specs_from_json(json["outputs"], "output"));
  return graph;
}

}  // namespace hasten
