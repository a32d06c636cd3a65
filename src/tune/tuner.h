// SPDX-License-Identifier: Apache-2.0
// The way from a model file to an artifact. Joins the stages; owns no policy.
#pragma once

#include <hasten/result.h>
#include <hasten/tune.h>

#include "backend/compilers.h"
#include "model/model.h"
#include "model/signature.h"
#include "record/tune_record.h"
#include "strategy/strategy.h"
#include "tune/contest.h"
#include "tune/contestant.h"
#include "tune/inputs.h"
#include "tune/saving.h"
#include "tune/scouting.h"
#include "tune/workshop.h"

#include <string>
#include <vector>

namespace hasten {

class Tuner {
 public:
  Tuner(Workshop& shop, StrategyOptions strategy) : shop_(shop), strategy_(strategy) {}

  // Whatever happens, record() tells how far it came.
  Status run();
  const TuneRecord& record() const { return record_; }

 private:
  Status tune_graphs(std::vector<GraphOutcome>& outcomes);
  void take_time(std::chrono::nanoseconds begin);
  Status look_around();  // Model, backends, signature.
  Status begin_journal();
  Status tune_graph(PreparedGraph prepared, GraphOutcome& outcome);
  void build_and_measure(GraphOutcome& outcome, Conversions& conversions);
  // Choose, confirm, choose again.
  Status settle(GraphOutcome& outcome, Conversions& conversions);
  void measure_the_outrun(GraphOutcome& outcome);
  ContestOptions contest_options(const Original& original) const;
  bool within_budget(const Point& point) const;
  bool stands(const GraphOutcome& outcome, const Point& confirmed, std::string& why) const;
  void write_down(const GraphOutcome& outcome, bool settled);
  Status save(std::vector<GraphOutcome>& outcomes);
  Status publish() const;  // The JSON file, as far as things are known.

  Workshop& shop_;
  TuneRecord record_;
  StrategyOptions strategy_;
  Model model_;
  std::vector<Scouted> scouted_;
  Signature signature_;
  Compilers compilers_;
};

}  // namespace hasten
