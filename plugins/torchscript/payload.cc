// SPDX-License-Identifier: Apache-2.0
#include "payload.h"

#include <hasten/plugin_options_file.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "options.h"

namespace hasten {
namespace {

namespace fs = std::filesystem;
using plugin_detail::refuse_file;

constexpr std::string_view kModel = "model.pt", kGraph = "inputs.json";

std::string to_json(const std::vector<GraphInput>& graph) {
  std::string inputs;
  for (const GraphInput& input : graph) {
    std::string axes;
    for (const int64_t size : input.smallest) {
      axes += (axes.empty() ? "" : ",") + ("{\"min\":" + std::to_string(size)) + "}";
    }
    inputs += (inputs.empty() ? "" : ",") + ("{\"name\":" + plugin_detail::quoted(input.name)) +
              ",\"dtype\":" + plugin_detail::quoted(input.dtype) + ",\"axes\":[" + axes + "]}";
  }
  return "{\"inputs\":[" + inputs + "]}";
}

void write(const fs::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary);
  if (!(out << text).flush()) refuse_file(file, "cannot be written");
}

std::string read(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) refuse_file(file, "cannot be read");
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

void save_payload(const std::string& dir, const std::string& model, const Options& options,
                  const std::vector<GraphInput>& graph) {
  std::error_code failure;
  fs::copy_file(model, fs::path(dir) / kModel, fs::copy_options::overwrite_existing, failure);
  if (failure) {
    refuse_file(fs::path(dir) / kModel,
                "cannot be copied from " + model + ": " + failure.message());
  }
  save_options(dir, options);
  write(fs::path(dir) / kGraph, to_json(graph));
}

Payload read_payload(const std::string& dir, std::span<const OptionSpec> known) {
  return {.model = fs::path(dir) / kModel,
          .options = load_options(dir, known, kTorchScript),
          .graph = graph_inputs(read(fs::path(dir) / kGraph))};
}

}  // namespace hasten
