// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"
namespace hasten {
int run_tune(const TuneCommand&) { return kExitBug; }
int run_run(const RunCommand&) { return kExitBug; }
int run_bench(const BenchCommand&) { return kExitBug; }
int run_inspect(const InspectCommand&) { return kExitBug; }
int run_verify(const VerifyCommand&) { return kExitBug; }
int run_backends(const BackendsCommand&) { return kExitBug; }
int run_plugin_test(const PluginTestCommand&) { return kExitBug; }
}  // namespace hasten
