// SPDX-License-Identifier: Apache-2.0
#include "tune/conversions.h"

#include <algorithm>

#include "base/text.h"

namespace hasten {
namespace {

void read_facts(const Json& facts, Converted& converted) {
  converted.facts.push(facts);
  if (facts["machine_specific"].as_bool()) converted.machine_specific = true;
  for (const auto& [symbol, range] : facts["ranges"].members()) {
    if (range.items().size() != 2) continue;
    const int64_t low = range.items()[0].as_int();
    const int64_t high = range.items()[1].as_int(INT64_MAX);  // null: no upper bound.
    const auto [known, is_new] = converted.ranges.try_emplace(symbol, low, high);
    if (!is_new) {
      known->second = {std::max(known->second.first, low), std::min(known->second.second, high)};
    }
  }
}

}  // namespace

Conversions::Conversions(Workshop& shop, const Compilers& compilers, const Model& model,
                         const GraphSpec& graph, std::filesystem::path samples)
    : shop_(shop),
      compilers_(compilers),
      model_(model),
      graph_(graph),
      samples_(std::move(samples)) {}

Result<std::string> Conversions::reachable(const std::vector<std::string>& formats) const {
  return compilers_.reachable(model_.format, formats);
}

Result<Converted> Conversions::get(const std::string& to,
                                   const std::map<std::string, std::string>& options) {
  Converted current;
  current.path = model_.path;
  current.format = model_.format;
  HASTEN_TRY(const std::vector<CompilerEntry> chain, compilers_.chain(model_.format, to));
  for (size_t i = 0; i < chain.size(); ++i) {
    // Only the last step makes what the backend takes, so the options are its own.
    static const std::map<std::string, std::string> kNone;
    HASTEN_TRY(current, step(chain[i], current, i + 1 == chain.size() ? options : kNone));
  }
  return current;
}

Result<Converted> Conversions::step(const CompilerEntry& compiler, const Converted& from,
                                    const std::map<std::string, std::string>& options) {
  std::string key = compiler.name;
  for (const auto& [name, value] : options) key += format(",{}={}", name, value);

  std::promise<Result<Converted>> promise;
  std::shared_future<Result<Converted>> made;
  size_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = steps_.find(key); known != steps_.end())
      made = known->second;
    else
      steps_[key] = promise.get_future().share();
    number = steps_.size();
  }
  if (made.valid()) {
    Result<Converted> shared = made.get();
    if (shared) shared->seconds = from.seconds;  // Somebody else paid.
    return shared;
  }

  const auto finish = [&](Result<Converted> result) {
    promise.set_value(result);
    return result;
  };
  CompileRequest request;
  request.model = from.path;
  request.format = from.format;
  request.graph = graph_.to_json();
  request.samples = samples_;
  request.options = options;
  request.work_dir = shop_.folder / format("graph-{}-convert-{}", graph_.name, number);
  if (Status made_folder = make_folder(request.work_dir); !made_folder) {
    return finish(std::move(made_folder).error());
  }
  shop_.say("convert", key);
  Result<CompileResult> compiled = [&] {
    const UnionTimer::Scope work = shop_.work.piece();
    return compilers_.run(shop_.spawner, compiler, request, shop_.build_limits());
  }();
  if (!compiled) {
    shop_.record("conversion", Json::object({{"step", key}, {"failed", compiled.error().message}}));
    return finish(std::move(compiled).error());
  }
  Converted converted = from;
  converted.path = compiled->path;
  converted.format = compiler.to;
  converted.seconds += compiled->seconds;
  read_facts(compiled->facts, converted);
  shop_.record(
      "conversion",
      Json::object({{"step", key}, {"seconds", compiled->seconds}, {"facts", compiled->facts}}));
  return finish(std::move(converted));
}

}  // namespace hasten
