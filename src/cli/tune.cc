// SPDX-License-Identifier: Apache-2.0
#include <hasten/tune.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"

namespace hasten {

int run_tune(const TuneCommand& command) {
  TuneOptions options = command.tune;
  options.plugins = command.common.plugins;
  options.threads = command.common.threads;
  const bool json_on_stdout = command.common.json == "-";
  if (!json_on_stdout) options.json = command.common.json;
  const InterruptScope interrupt;
  options.stop = interrupt.token();

  ProgressPrinter progress(command.common.quiet);
  Result<TuneReport> report = tune(options, [&](const TuneEvent& event) { progress.show(event); });
  if (!report) return fail(report.error());
  progress.done();
  print(json_on_stdout ? report->json : report->table);
  return kExitDone;
}

}  // namespace hasten
