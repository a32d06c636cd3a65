// SPDX-License-Identifier: Apache-2.0
#include <hasten/tune.h>

#include "base/files.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"

namespace hasten {

int run_tune(const TuneCommand& command) {
  TuneOptions options = command.tune;
  options.plugins = command.common.plugins;
  options.threads = command.common.threads;
  // A tune that fails has found things out all the same: its JSON goes through a file,
  // which is there whatever the end.
  const bool json_on_stdout = command.common.json == "-";
  Result<TemporaryFolder> folder = TemporaryFolder::create("report");
  if (!folder) return fail(folder.error());
  options.json = json_on_stdout ? folder->path() / "tune.json"
                                : std::filesystem::path(command.common.json);
  const InterruptScope interrupt;
  options.stop = interrupt.token();

  ProgressPrinter progress(command.common.quiet);
  Result<TuneReport> report = tune(options, [&](const TuneEvent& event) { progress.show(event); });
  progress.done();
  if (json_on_stdout) {
    if (const Result<std::string> json = read_file(options.json)) print_json(*json);
  } else if (report) {
    print(report->table);
  }
  return report ? kExitDone : fail(report.error());
}

}  // namespace hasten
