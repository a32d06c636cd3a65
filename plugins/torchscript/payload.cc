// SPDX-License-Identifier: Apache-2.0
#include "payload.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "options.h"

namespace hasten {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kModel = "model.pt", kOptions = "options.txt", kGraph = "inputs.json";

[[noreturn]] void fail(const fs::path& file, const std::string& what) {
  throw PluginError(HASTEN_INVALID_ARGUMENT, file.string() + ": " + what);
}

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
  if (!(out << text).flush()) fail(file, "cannot be written");
}

std::string read(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) fail(file, "cannot be read");
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
    fail(fs::path(dir) / kModel, "cannot be copied from " + model + ": " + failure.message());
  }
  std::string lines;
  for (const auto& [key, value] : options.values()) lines += key + "=" + value + "\n";
  write(fs::path(dir) / kOptions, lines);
  write(fs::path(dir) / kGraph, to_json(graph));
}

Payload read_payload(const std::string& dir, std::span<const OptionSpec> known) {
  std::istringstream lines(read(fs::path(dir) / kOptions));
  std::vector<std::pair<std::string, std::string>> pairs;
  for (std::string line; std::getline(lines, line);) {
    const size_t equals = line.find('=');
    if (equals == line.npos) fail(fs::path(dir) / kOptions, "has a line without '='");
    pairs.emplace_back(line.substr(0, equals), line.substr(equals + 1));
  }
  std::vector<hasten_option> given;
  for (const auto& [key, value] : pairs) given.push_back({key.c_str(), value.c_str()});
  return {.model = fs::path(dir) / kModel,
          .options = Options(known, given, kTorchScript),
          .graph = graph_inputs(read(fs::path(dir) / kGraph))};
}

}  // namespace hasten
