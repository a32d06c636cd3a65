// SPDX-License-Identifier: Apache-2.0
// The command line. The only file that knows CLI11; what the commands do is theirs.
#include <CLI/CLI.hpp>

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "base/version.h"
#include "strategy/strategy.h"

namespace hasten {
namespace {

using std::string;

// CLI11 wants a validator to return the message, or nothing. Validators without a name of
// their own keep the help short: what is expected is the option's type name.
CLI::Validator duration_validator() {
  return CLI::Validator(
      [](string& text) {
        return parse_duration(text) ? string()
                                    : format("'{}' is no duration; write 50ms, 2s, 10m", text);
      },
      "");
}

CLI::Validator size_validator() {
  return CLI::Validator(
      [](string& text) {
        return parse_size(text) ? string() : format("'{}' is no size; write 512MB, 2GB", text);
      },
      "");
}

// `wanted`: "a whole number above 0".
template <class T>
CLI::Validator number_validator(T least, const string& wanted) {
  return CLI::Validator(
      [least, wanted](string& text) {
        T value{};
        const bool is_number = CLI::detail::lexical_cast(text, value);
        return is_number && value >= least ? string() : format("'{}' is not {}", text, wanted);
      },
      "");
}

CLI::Validator count_validator() { return number_validator<int64_t>(1, "a whole number above 0"); }

CLI::Validator tolerance_validator() {
  return number_validator<double>(0, "a number of at least 0");
}

void add_common(CLI::App& app, CommonOptions& common) {
  app.add_option("--json", common.json, "Write the result as JSON to FILE, or to stdout for -")
      ->type_name("FILE|-");
  app.add_option("--plugin", common.plugins,
                 "A plugin or a folder of plugins to look in first; may be repeated")
      ->type_name("PATH");
  app.add_flag("-q,--quiet", common.quiet, "No progress on stderr");
}

void add_threads(CLI::App& app, CommonOptions& common) {
  app.add_option("--threads", common.threads, "CPUs to use; 0: all that this process may use")
      ->type_name("N")
      ->check(number_validator<int64_t>(0, "a whole number of at least 0"));
}

void add_duration(CLI::App& app, const string& name, const string& help,
                  std::function<void(std::chrono::nanoseconds)> take) {
  app.add_option_function<string>(
         name, [take](const string& text) { take(*parse_duration(text)); }, help)
      ->check(duration_validator())
      ->type_name("TIME");
}

constexpr const char* kTuneExamples = R"(
Examples:
  hasten tune resnet18.onnx --input image.npz -o resnet18.hasten
  hasten tune bert.pt2 --input 'input_ids=int64[B,T=8..128]@0..30521' --input 'attention_mask=int64[B,T=8..128]@1..1' \
      --strategy latency-budget --latency-budget 20ms --batch-sizes 1,2,4,8 -o bert.hasten
  hasten tune net.pt --input a.npz --input b.npz --backend onnxruntime:threads=1 --backend openvino --json - -o net.hasten

Inputs: an .npz with one array per input (named, or in order), several files are several samples; or a SPEC,
name=dtype[axes] with sizes and symbols: B is the batch, other symbols are dynamic, T=8..128 gives the range, and
@low..high behind it the range of the values.
)";

CLI::App* add_tune(CLI::App& app, TuneCommand& c) {
  CLI::App* sub = app.add_subcommand(
      "tune", "Build a model with every backend, check, measure, choose, and write an artifact");
  sub->footer(kTuneExamples);
  TuneOptions& t = c.tune;
  sub->add_option("MODEL", t.model, "An .onnx, TorchScript .pt or torch.export .pt2 file")
      ->required();
  sub->add_option("-i,--input", t.inputs, "FILE.npz or SPEC; may be repeated")
      ->type_name("FILE|SPEC");
  sub->add_option_function<string>(
         "-s,--strategy", [&t](const string& text) { t.strategy = *strategy_from_string(text); },
         "one-backend, first-wins, max-throughput (default), min-latency or latency-budget")
      ->check(CLI::Validator(
          [](string& text) {
            return strategy_from_string(text)
                       ? string()
                       : format(
                             "'{}' is no strategy; there are one-backend, first-wins, "
                             "max-throughput, min-latency, latency-budget",
                             text);
          },
          ""))
      ->type_name("NAME");
  sub->add_option("-b,--backend", t.backends,
                  "NAME or NAME:key=value,...; may be repeated; default: all that can run")
      ->type_name("NAME[:CONFIG]");
  sub->add_option("--batch-sizes", t.batch_sizes,
                  "Sizes to record at and to measure, as 1,2,4; default: record at 1,2 and double "
                  "until throughput stops growing")
      ->delimiter(',')
      ->check(count_validator())
      ->type_name("N,N");
  add_duration(*sub, "--latency-budget", "Of one call, for --strategy latency-budget",
               [&t](auto v) { t.latency_budget = v; });
  sub->add_option("--min-speedup", t.min_speedup,
                  "Gate of one-backend and first-wins: 0.01 asks for 1 % over the original")
      ->check(tolerance_validator())
      ->type_name("RATIO");
  sub->add_flag_callback(
      "--no-performance-validation", [&t] { t.performance_validation = false; },
      "Leave the original model out of the choice");
  sub->add_option("--atol", t.absolute_tolerance, "Absolute tolerance of the check")
      ->check(tolerance_validator())
      ->type_name("X");
  sub->add_option("--rtol", t.relative_tolerance, "Relative tolerance of the check")
      ->check(tolerance_validator())
      ->type_name("X");
  sub->add_option("--allow-lossy", t.allow_lossy,
                  "Also try lower precision, held to this relative tolerance")
      ->check(number_validator(std::numeric_limits<double>::min(), "a number above 0"))
      ->type_name("TOL");
  add_duration(*sub, "--max-time", "Of the whole tune", [&t](auto v) { t.max_time = v; });
  add_duration(*sub, "--build-timeout", "Of one build (default 10m)",
               [&t](auto v) { t.build_timeout = v; });
  add_duration(*sub, "--run-timeout", "Of one call (default 1m)",
               [&t](auto v) { t.run_timeout = v; });
  sub->add_option_function<string>(
         "--memory-limit", [&t](const string& text) { t.memory_limit_bytes = *parse_size(text); },
         "Of one child; default: nine tenths of what is available")
      ->check(size_validator())
      ->type_name("SIZE");
  sub->add_option("--seed", t.seed, "Of the random order and of random inputs")->type_name("N");
  sub->add_option("-o,--output", t.output, "The artifact to write")->type_name("OUT.hasten");
  add_threads(*sub, c.common);
  add_common(*sub, c.common);
  return sub;
}

CLI::App* add_run(CLI::App& app, RunCommand& c) {
  CLI::App* sub = app.add_subcommand("run", "Run an artifact, or a model as it is, on inputs");
  sub->footer(R"(
Examples:
  hasten run resnet18.hasten --input image.npz -o logits.npz
  hasten run resnet18.onnx --input image.npz --json -
)");
  sub->add_option("TARGET", c.target, "An artifact or a model")->required();
  sub->add_option("-i,--input", c.inputs, "FILE.npz; several are several calls")
      ->required()
      ->type_name("FILE");
  sub->add_option("-o,--output", c.output,
                  "Where the outputs go; with several inputs, -1, -2, ... is added to the name")
      ->type_name("OUT.npz");
  sub->add_option("-b,--backend", c.backend, "Of a model: NAME[:CONFIG]; default: its baseline");
  add_threads(*sub, c.common);
  add_common(*sub, c.common);
  return sub;
}

CLI::App* add_bench(CLI::App& app, BenchCommand& c) {
  CLI::App* sub =
      app.add_subcommand("bench", "Measure an artifact or a model, turn by turn against another");
  sub->footer(R"(
Examples:
  hasten bench resnet18.hasten --against resnet18.onnx
  hasten bench a.hasten --against b.hasten --batch-sizes 1,8 --rounds 50 --json -
)");
  sub->add_option("TARGET", c.target, "An artifact or a model")->required();
  sub->add_option("--against", c.against, "The one to compare with")->type_name("TARGET");
  sub->add_option("-i,--input", c.inputs, "FILE.npz or SPEC; default: the artifact's own samples")
      ->type_name("FILE|SPEC");
  sub->add_option("--batch-sizes", c.batch_sizes, "Default: the size that was chosen")
      ->delimiter(',')
      ->check(count_validator())
      ->type_name("N,N");
  sub->add_option("--rounds", c.rounds, "At most this many rounds (default 30)")
      ->check(count_validator())
      ->type_name("N");
  sub->add_option("--seed", c.seed, "Of the random order")->type_name("N");
  add_threads(*sub, c.common);
  add_common(*sub, c.common);
  return sub;
}

// The sentence for what CLI11 could not place: a command or an option that is not there,
// with the one that was meant.
Error mistake_of(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  const CLI::App& at = chosen.empty() ? app : *chosen.front();
  const string help =
      format("hasten {}--help shows the options", chosen.empty() ? "" : at.get_name() + " ");
  const auto unknown = [&](const char* what, const string& word, const std::vector<string>& known) {
    const std::optional<string> meant = closest(word, known);
    return Error{Code::kInvalidArgument, format("there is no {} '{}'", what, word),
                 meant ? format("did you mean '{}'?", *meant) : help};
  };
  if (chosen.empty() && argc > 1 && argv[1][0] != '-') {
    std::vector<string> known;
    for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
      known.push_back(sub->get_name());
    }
    return unknown("command", argv[1], known);
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error)) {
    std::vector<string> known;
    for (const CLI::Option* option : at.get_options()) {
      for (const string& name : option->get_lnames()) known.push_back("--" + name);
    }
    for (const string& word : app.remaining(true)) {
      if (word.size() < 2 || word[0] != '-') continue;
      return unknown("option", word.substr(0, word.find('=')), known);
    }
    return {Code::kInvalidArgument, format("'{}' was not expected", join(app.remaining(true), " ")),
            help};
  }
  return {Code::kInvalidArgument, error.what(), help};
}

}  // namespace

int run_command_line(int argc, char** argv) {
  CLI::App app{"Makes PyTorch and ONNX models run faster, and proves it.", "hasten"};
  app.set_version_flag("--version", string("hasten ") + kVersion);
  app.require_subcommand(1);
  app.footer(R"(
Exit codes: 0 done, 1 nothing usable found, 2 bad usage, 3 the backend named is unavailable, 70 a bug.
Start with:  hasten backends ;  hasten tune MODEL --input x.npz -o MODEL.hasten)");

  TuneCommand tune;
  RunCommand run;
  BenchCommand bench;
  InspectCommand inspect;
  VerifyCommand verify;
  BackendsCommand backends;
  PluginTestCommand plugin_test;
  int code = kExitDone;
  add_tune(app, tune)->callback([&] { code = run_tune(tune); });
  add_run(app, run)->callback([&] { code = run_run(run); });
  add_bench(app, bench)->callback([&] { code = run_bench(bench); });

  CLI::App* sub = app.add_subcommand(
      "inspect", "Show inputs, outputs and symbols of a model, or the manifest of an artifact");
  sub->footer(
      "\nExamples:\n  hasten inspect resnet18.onnx\n  hasten inspect resnet18.hasten --json -\n");
  sub->add_option("TARGET", inspect.target, "An artifact or a model")->required();
  add_common(*sub, inspect.common);
  sub->callback([&] { code = run_inspect(inspect); });

  sub = app.add_subcommand("verify",
                           "Check an artifact: hashes, then its values against the original's");
  sub->footer("\nExample:\n  hasten verify resnet18.hasten\n");
  sub->add_option("ARTIFACT", verify.artifact, "A .hasten file")->required();
  add_common(*sub, verify.common);
  sub->callback([&] { code = run_verify(verify); });

  sub =
      app.add_subcommand("backends", "List the backends: what can run here; for the rest, why not");
  sub->footer("\nExamples:\n  hasten backends\n  hasten backends --json -\n");
  add_common(*sub, backends.common);
  sub->callback([&] { code = run_backends(backends); });

  sub = app.add_subcommand("plugin-test", "Run the conformance suite over a plugin");
  sub->footer(
      "\nExample:\n  hasten plugin-test build/plugins/hasten_onnxruntime.so --model m.onnx --input "
      "x.npz\n");
  sub->add_option("PLUGIN", plugin_test.plugin, "A hasten_NAME.so or hasten_NAME.json")->required();
  sub->add_option("--model", plugin_test.model, "A model in a format that the plugin takes");
  sub->add_option("-i,--input", plugin_test.inputs, "Inputs of that model")->type_name("FILE");
  add_common(*sub, plugin_test.common);
  sub->callback([&] { code = run_plugin_test(plugin_test); });

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForVersion& version) {
    return app.exit(version);
  } catch (const CLI::ParseError& mistake) {
    print_error(mistake_of(app, mistake, argc, argv));
    return kExitBadUsage;
  }
  return code;
}

}  // namespace hasten
