// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "model/recording.h"
#include "python/bindings.h"
#include "python/tensors.h"

namespace nb = nanobind;

namespace hasten {
namespace {

// The recording speaks of samples; Python wants to know which of its calls they are.
int64_t index_of(const Sample& sample) {
  int64_t index = 0;
  std::from_chars(sample.origin.data(), sample.origin.data() + sample.origin.size(), index);
  return index;
}

std::string graphs_of(const std::vector<std::string>& names, const nb::list& calls,
                      const std::vector<std::optional<int64_t>>& batch_sizes) {
  std::vector<RecordedCall> recorded;
  for (size_t i = 0; i < calls.size(); ++i) {
    RecordedCall call;
    call.sample.inputs = from_python(nb::cast<nb::list>(calls[i]));
    call.sample.origin = std::to_string(i);
    call.batch_size = batch_sizes.at(i);
    recorded.push_back(std::move(call));
  }
  Json graphs = Json::array();
  for (const RecordedGraph& graph : group_into_graphs(std::move(recorded), names)) {
    Json members = Json::array();
    for (const Sample& sample : graph.samples) members.push(index_of(sample));
    graphs.push(Json::object({{"graph", graph.spec.to_json()}, {"calls", std::move(members)}}));
  }
  return graphs.dump();
}

}  // namespace

void bind_recording(nb::module_& module) {
  module.def("graphs_of", &graphs_of, nb::arg("names"), nb::arg("calls"), nb::arg("batch_sizes"),
             "Groups recorded calls (each a list of tensors) by rank and dtype, and says of every "
             "axis whether it is static, follows the batch, or varies otherwise. JSON: a list of "
             "{'graph': ..., 'calls': [indices]}.");
}

}  // namespace hasten
