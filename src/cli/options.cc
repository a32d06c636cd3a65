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

// CLI11 wants a validator to return the message, or nothing. What stands behind an option's
// name in the help is its option_text(), so validators need no name.
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

// What is added from here on stands under this heading in the help.
void heading(CLI::App& app, const char* title) { app.option_defaults()->group(title); }

void add_common(CLI::App& app, CommonOptions& common) {
  app.add_option("--json", common.json, "The result as JSON, into FILE or to stdout (-)")
      ->option_text("FILE|-")
      ->transform([](const string& text) { return text == "/dev/stdout" ? string("-") : text; });
  app.add_option("--plugin", common.plugins,
                 "A plugin, or a folder of them, to look in first; may be repeated")
      ->option_text("PATH");
  app.add_flag("-q,--quiet", common.quiet, "No progress on stderr");
}

void add_threads(CLI::App& app, CommonOptions& common) {
  app.add_option("--threads", common.threads, "CPUs to use; 0: all that this process may use")
      ->option_text("N")
      ->check(number_validator<int64_t>(0, "a whole number of at least 0"));
}

void add_duration(CLI::App& app, const string& name, const string& help,
                  std::function<void(std::chrono::nanoseconds)> take) {
  app.add_option_function<string>(
         name, [take](const string& text) { take(*parse_duration(text)); }, help)
      ->check(duration_validator())
      ->option_text("TIME");
}

constexpr const char* kTuneExamples =
    R"(An .npz holds one call, with an array for each input by name or by order; several are several samples.
For a model with one input an .npy is enough.
A SPEC describes random inputs: name=dtype[axes] with sizes and symbols. B is the batch, other symbols
vary, T=8..128 gives a range; @low..high behind the brackets is the range of the values.

Examples:
  hasten tune resnet18.onnx --input image.npz -o resnet18.hasten
  hasten tune net.pt --input a.npz --input b.npz --backend onnxruntime:threads=1 --backend openvino \
      -o net.hasten --json net.json
  hasten tune bert.pt2 --input 'input_ids=int64[B,T=8..128]@0..30521' \
      --input 'attention_mask=int64[B,T=8..128]@1..1' \
      --strategy latency-budget --latency-budget 20ms --batch-sizes 1,2,4,8 -o bert.hasten)";

CLI::App* add_tune(CLI::App& app, TuneCommand& c) {
  CLI::App* sub = app.add_subcommand(
      "tune", "Build a model with every backend, check, measure, choose, write an artifact");
  sub->footer(kTuneExamples);
  TuneOptions& t = c.tune;
  sub->add_option("MODEL", t.model, "An .onnx, TorchScript .pt or torch.export .pt2 file")
      ->required()
      ->option_text(" ");
  heading(*sub, "Inputs");
  sub->add_option("-i,--input", t.inputs,
                  "An .npz or .npy file, or a SPEC; may be repeated\nDefault: random values in the model's shapes")
      ->option_text("FILE|SPEC");
  sub->add_option("--batch-sizes", t.batch_sizes,
                  "Sizes to record at and to measure\nDefault: record at 1,2; measure at 1, 2, 4, "
                  "... until\nthroughput stops growing")
      ->delimiter(',')
      ->check(count_validator())
      ->option_text("N,N,...");
  sub->add_option("--seed", t.seed, "Of random inputs and of the random order of turns")
      ->option_text("N");

  heading(*sub, "Candidates");
  sub->add_option("-b,--backend", t.backends,
                  "One backend, or one configuration of it: NAME:key=value,...\n"
                  "May be repeated; default: every backend that can run here")
      ->option_text("NAME[:CONFIG]");
  sub->add_option("--allow-lossy", t.allow_lossy,
                  "Also try lower precision, held to this relative tolerance")
      ->check(number_validator(std::numeric_limits<double>::min(), "a number above 0"))
      ->option_text("TOL");
  add_threads(*sub, c.common);

  heading(*sub, "Choice");
  sub->add_option_function<string>(
         "-s,--strategy", [&t](const string& text) { t.strategy = *strategy_from_string(text); },
         "max-throughput (default), min-latency, latency-budget,\nfirst-wins or one-backend")
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
      ->option_text("NAME");
  add_duration(*sub, "--latency-budget", "Of one call, for --strategy latency-budget",
               [&t](auto v) { t.latency_budget = v; });
  sub->add_option("--min-speedup", t.min_speedup,
                  "What first-wins and one-backend ask for; default: 0.01, that is 1 %")
      ->check(tolerance_validator())
      ->option_text("RATIO");
  sub->add_flag_callback(
      "--no-performance-validation", [&t] { t.performance_validation = false; },
      "Leave the original model out of the choice");

  heading(*sub, "Check");
  sub->add_option("--atol", t.absolute_tolerance,
                  "Absolute tolerance; default: from the original's own error")
      ->check(tolerance_validator())
      ->option_text("X");
  sub->add_option("--rtol", t.relative_tolerance, "Relative tolerance; the same")
      ->check(tolerance_validator())
      ->option_text("X");

  heading(*sub, "Limits");
  add_duration(*sub, "--max-time", "Of the whole tune", [&t](auto v) { t.max_time = v; });
  add_duration(*sub, "--build-timeout", "Of one build or conversion; default: 10m",
               [&t](auto v) { t.build_timeout = v; });
  add_duration(*sub, "--run-timeout", "Of one call; default: 1m",
               [&t](auto v) { t.run_timeout = v; });
  sub->add_option_function<string>(
         "--memory-limit", [&t](const string& text) { t.memory_limit_bytes = *parse_size(text); },
         "Of one child; default: nine tenths of what is free")
      ->check(size_validator())
      ->option_text("SIZE");
  sub->add_option_function<string>(
         "--waiting-limit", [&t](const string& text) { t.waiting_limit_bytes = *parse_size(text); },
         "Of all that wait for a turn, together; default: half of what is free")
      ->check(size_validator())
      ->option_text("SIZE");

  heading(*sub, "Results");
  sub->add_option("-o,--output", t.output, "The artifact to write; a journal is written beside it")
      ->option_text("OUT.hasten");
  add_common(*sub, c.common);
  return sub;
}

CLI::App* add_run(CLI::App& app, RunCommand& c) {
  CLI::App* sub = app.add_subcommand("run", "Run an artifact, or a model as it is, on inputs");
  sub->footer(R"(Examples:
  hasten run resnet18.hasten --input image.npz -o logits.npz
  hasten run resnet18.hasten --input image.npy -o logits.npz
  hasten run resnet18.onnx --input 'image=float32[1,3,224,224]' --json -)");
  sub->add_option("TARGET", c.target, "An artifact or a model")->required()->option_text(" ");
  sub->add_option("-i,--input", c.inputs,
                  "The inputs (required), as tune takes them; each file is a call,\n"
                  "SPECs together are one call with random values")
      ->required()
      ->option_text("FILE|SPEC");
  sub->add_option("-o,--output", c.output,
                  "Where the outputs go; of several calls OUT-1.npz, OUT-2.npz, ...")
      ->option_text("OUT.npz");
  sub->add_option("-b,--backend", c.backend, "What runs a model; default: its baseline")
      ->option_text("NAME[:CONFIG]");
  add_threads(*sub, c.common);
  add_common(*sub, c.common);
  return sub;
}

CLI::App* add_bench(CLI::App& app, BenchCommand& c) {
  CLI::App* sub =
      app.add_subcommand("bench", "Measure an artifact or a model, turn by turn against another");
  sub->footer(R"(Examples:
  hasten bench resnet18.hasten --against resnet18.onnx
  hasten bench a.hasten --against b.hasten --batch-sizes 1,8 --rounds 50 --json -)");
  sub->add_option("TARGET", c.target, "An artifact or a model")->required()->option_text(" ");
  sub->add_option("--against", c.against, "The one to compare with")->option_text("TARGET");
  sub->add_option("-i,--input", c.inputs, "An .npz or .npy file, or a SPEC; default: the artifact's samples")
      ->option_text("FILE|SPEC");
  sub->add_option("--batch-sizes", c.batch_sizes,
                  "Sizes to measure; default: the one that was chosen")
      ->delimiter(',')
      ->check(count_validator())
      ->option_text("N,N");
  sub->add_option("--rounds", c.rounds, "At most this many rounds; default: 30")
      ->check(number_validator<int64_t>(2, "a whole number above 1"))
      ->option_text("N");
  sub->add_option("--seed", c.seed, "Of the random order")->option_text("N");
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

int run_one_command(int argc, char** argv) {
  CLI::App app{"Makes PyTorch and ONNX models run faster, and proves it.", "hasten"};
  app.set_version_flag("--version", string("hasten ") + kVersion);
  app.require_subcommand(1);
  app.get_formatter()->column_width(28);  // Subcommands take it over.
  app.footer(R"(Start with:
  hasten backends
  hasten tune MODEL --input x.npz -o MODEL.hasten
  hasten COMMAND --help

Exit status: 0 done, 1 nothing usable found, 2 bad usage, 3 a backend that is needed is unavailable,
70 a bug of ours, 130 interrupted.)");

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
      "inspect", "Show inputs and outputs of a model, or what is in an artifact");
  sub->footer(
      "Examples:\n  hasten inspect resnet18.onnx\n  hasten inspect resnet18.hasten --json -");
  sub->add_option("TARGET", inspect.target, "An artifact or a model")->required()->option_text(" ");
  add_common(*sub, inspect.common);
  sub->callback([&] { code = run_inspect(inspect); });

  sub = app.add_subcommand("verify",
                           "Check an artifact: hashes, then its values against the original's");
  sub->footer("Example:\n  hasten verify resnet18.hasten");
  sub->add_option("ARTIFACT", verify.artifact, "A .hasten file")->required()->option_text(" ");
  add_common(*sub, verify.common);
  sub->callback([&] { code = run_verify(verify); });

  sub =
      app.add_subcommand("backends", "List the backends: what can run here; for the rest, why not");
  sub->footer("Examples:\n  hasten backends\n  hasten backends --json -");
  add_common(*sub, backends.common);
  sub->callback([&] { code = run_backends(backends); });

  sub = app.add_subcommand("plugin-test", "Run the conformance suite over a plugin");
  sub->footer(
      "Example:\n  hasten plugin-test build/plugins/hasten_onnxruntime.so --model m.onnx --input "
      "x.npz");
  sub->add_option("PLUGIN", plugin_test.plugin, "A hasten_NAME.so or hasten_NAME.json")
      ->required()
      ->option_text(" ");
  sub->add_option("--model", plugin_test.model, "In a format that the plugin takes")
      ->option_text("FILE");
  sub->add_option("-i,--input", plugin_test.inputs, "Inputs of that model, .npz or .npy; may be repeated")
      ->option_text("FILE");
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

}  // namespace

int run_command_line(int argc, char** argv) {
  const int code = run_one_command(argc, argv);
  if (code != kExitDone) return code;
  const Status whole = check_stdout();
  return whole ? code : fail(whole.error());
}

}  // namespace hasten
