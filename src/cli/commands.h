// SPDX-License-Identifier: Apache-2.0
// One struct of options and one function per subcommand. Each function returns
// the exit code: stdout is the result, stderr is progress, warnings and errors.
#pragma once

#include <hasten/result.h>
#include <hasten/tune.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace hasten {

// Exit codes, as README and `hasten --help` list them.
constexpr int kExitDone = 0;
constexpr int kExitNothingUsable = 1;
constexpr int kExitBadUsage = 2;
constexpr int kExitUnavailable = 3;
constexpr int kExitBug = 70;           // sysexits.h: EX_SOFTWARE
constexpr int kExitInterrupted = 130;  // 128 + SIGINT, as shells have it.

struct CommonOptions {
  std::string json;                            // FILE, "-" for stdout, or empty.
  std::vector<std::filesystem::path> plugins;  // Files or folders to look in first.
  bool quiet = false;                          // No progress on stderr.
  int threads = 0;
};

struct TuneCommand {
  CommonOptions common;
  TuneOptions tune;
};

struct RunCommand {
  CommonOptions common;
  std::filesystem::path target;     // An artifact or a model.
  std::vector<std::string> inputs;  // Files, or SPECs.
  std::filesystem::path output;
  std::string backend;  // Of a model; empty: its baseline.
};

struct BenchCommand {
  CommonOptions common;
  std::filesystem::path target;
  std::filesystem::path against;     // Empty: alone.
  std::vector<std::string> inputs;   // Empty: what the artifact carries.
  std::vector<int64_t> batch_sizes;  // Empty: the one that was chosen.
  size_t rounds = 30;
  uint64_t seed = 0;
};

struct InspectCommand {
  CommonOptions common;
  std::filesystem::path target;
};

struct VerifyCommand {
  CommonOptions common;
  std::filesystem::path artifact;
};

struct BackendsCommand {
  CommonOptions common;
};

struct PluginTestCommand {
  CommonOptions common;
  std::filesystem::path plugin;
  std::filesystem::path model;  // Empty: what needs no model.
  std::vector<std::filesystem::path> inputs;
};

int run_tune(const TuneCommand& command);
int run_run(const RunCommand& command);
int run_bench(const BenchCommand& command);
int run_inspect(const InspectCommand& command);
int run_verify(const VerifyCommand& command);
int run_backends(const BackendsCommand& command);
int run_plugin_test(const PluginTestCommand& command);

// Parses and runs. Help and version go to stdout with 0, mistakes to stderr with 2.
int run_command_line(int argc, char** argv);

}  // namespace hasten
