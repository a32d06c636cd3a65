// SPDX-License-Identifier: Apache-2.0
#include "tune/lineup.h"

#include <algorithm>

#include "base/text.h"
#include "model/recording.h"

namespace hasten {
namespace {

const Scouted* find(std::span<const Scouted> scouted, const std::string& name) {
  const auto found = std::find_if(scouted.begin(), scouted.end(),
                                  [&](const Scouted& s) { return s.entry.name == name; });
  return found == scouted.end() ? nullptr : &*found;
}

// One of the backend's lossy proposals, also with further options.
bool is_lossy(const Scouted& backend, const Candidate& candidate) {
  return std::any_of(backend.proposals.begin(), backend.proposals.end(), [&](const Proposal& p) {
    return p.role == "lossy" && std::includes(candidate.config.begin(), candidate.config.end(),
                                              p.candidate.config.begin(), p.candidate.config.end());
  });
}

class Lineup {
 public:
  Lineup(const TuneOptions& options, const Conversions& conversions, const Original& original)
      : options_(options), conversions_(conversions), original_(original) {}

  // The contestant of this candidate: a new one, or the one that was named before.
  Contestant& add(const Scouted& backend, const Candidate& candidate) {
    for (Contestant& known : contestants_) {
      if (known.trial.candidate == candidate) return known;
    }
    Contestant contestant;
    contestant.backend = &backend;
    contestant.lossy = is_lossy(backend, candidate);
    contestant.trial.candidate = candidate;
    contestant.trial.version = backend.library_version();
    contestant.trial.graph = original_.graph.name;
    contestant.trial.repeat_command = repeat_command(options_, candidate);
    contestant.trial.note = "not tried";
    contestants_.push_back(std::move(contestant));
    return contestants_.back();
  }

  // All that the backend itself would try. `by_name`: the user asked for this backend.
  void add_proposals(const Scouted& backend, bool by_name) {
    const Candidate plain{.backend = backend.entry.name, .config = {}};
    if (backend.unavailable) {
      add(backend, plain).fail(Stage::kProbe, *backend.unavailable, TrialStatus::kUnavailable);
      return;
    }
    // A backend of another world (no way from this format to one it takes) is no news.
    if (!by_name && !conversions_.reachable(backend.formats())) return;
    if (!takes_the_model(backend, plain)) return;
    if (backend.unsupported) {
      add(backend, plain).fail(Stage::kProbe, *backend.unsupported);
      return;
    }
    bool any = false;
    for (const Proposal& proposal : backend.proposals) {
      const bool wanted = proposal.role == "default" ||
                          (proposal.role == "lossy" && options_.allow_lossy.has_value());
      if (!wanted) continue;
      add(backend, proposal.candidate);
      any = true;
    }
    if (!any && by_name) add(backend, plain);
  }

  // One that the user named with its configuration.
  void add_named(const Scouted& backend, const Candidate& candidate) {
    if (takes_the_model(backend, candidate)) add(backend, candidate);
  }

  std::vector<Contestant> take() { return std::move(contestants_); }

 private:
  bool takes_the_model(const Scouted& backend, const Candidate& candidate) {
    Result<std::string> format = conversions_.reachable(backend.formats());
    if (format) return true;
    add(backend, candidate)
        .fail(Stage::kConvert, std::move(format).error(), TrialStatus::kUnavailable);
    return false;
  }

  const TuneOptions& options_;
  const Conversions& conversions_;
  const Original& original_;
  std::vector<Contestant> contestants_;
};

// Whatever can make another trial of the same candidate end otherwise.
std::string limits_of(const TuneOptions& options) {
  const TuneOptions usual;
  std::string text;
  const auto add_time = [&](std::string_view name, std::chrono::nanoseconds time) {
    text += format(" {} {}ms", name, std::chrono::ceil<std::chrono::milliseconds>(time).count());
  };
  if (options.build_timeout != usual.build_timeout) {
    add_time("--build-timeout", options.build_timeout);
  }
  if (options.run_timeout != usual.run_timeout) add_time("--run-timeout", options.run_timeout);
  if (options.memory_limit_bytes > 0) {
    text += format(" --memory-limit {}", options.memory_limit_bytes);
  }
  if (options.absolute_tolerance) text += format(" --atol {}", *options.absolute_tolerance);
  if (options.relative_tolerance) text += format(" --rtol {}", *options.relative_tolerance);
  if (options.allow_lossy) text += format(" --allow-lossy {}", *options.allow_lossy);
  if (options.threads > 0) text += format(" --threads {}", options.threads);
  return text;
}

}  // namespace

Status check_named(const TuneOptions& options, std::span<const Scouted> scouted,
                   const Compilers& compilers, const Model& model) {
  std::vector<std::string> known;
  for (const Scouted& backend : scouted) known.push_back(backend.entry.name);
  std::optional<Error> refusal;  // Of the first that takes no such model.
  bool any_takes_it = options.backends.empty();
  for (const std::string& text : options.backends) {
    HASTEN_TRY(const Candidate candidate, Candidate::parse(text));
    const Scouted* backend = find(scouted, candidate.backend);
    if (!backend) {
      const std::optional<std::string> meant = closest(candidate.backend, known);
      return Error{
          Code::kInvalidArgument,
          format("there is no backend '{}'; there are {}", candidate.backend, join(known, ", ")),
          meant ? format("did you mean '{}'?", *meant)
                : "hasten backends lists them with their options"};
    }
    if (backend->unavailable) {
      Error error = Error(*backend->unavailable)
                        .within(format("the backend '{}' is unavailable", candidate.backend));
      error.code = Code::kUnavailable;  // Whatever its plugin broke on.
      return error;
    }
    HASTEN_TRY_STATUS(backend->check_config(candidate));
    Result<std::string> format = compilers.reachable(model.format, backend->formats());
    any_takes_it |= format.has_value();
    if (!format && !refusal) {
      refusal = std::move(format).error().within(hasten::format(
          "the backend '{}' cannot take {}", candidate.backend, model.path.filename().string()));
    }
  }
  if (any_takes_it) return {};
  // To name it was the mistake, unless only the means to convert are missing.
  if (refusal->code == Code::kUnsupported) refusal->code = Code::kInvalidArgument;
  return *std::move(refusal);
}

std::vector<Contestant> line_up(const TuneOptions& options, std::span<const Scouted> scouted,
                                const Conversions& conversions, const Original& original) {
  Lineup lineup(options, conversions, original);
  for (const std::string& text : options.backends) {
    const Result<Candidate> candidate = Candidate::parse(text);
    const Scouted* backend = candidate ? find(scouted, candidate->backend) : nullptr;
    if (!backend) continue;  // check_named() has told the user.
    if (candidate->config.empty())
      lineup.add_proposals(*backend, true);
    else
      lineup.add_named(*backend, *candidate);
  }
  if (options.backends.empty()) {
    for (const Scouted& backend : scouted) lineup.add_proposals(backend, false);
  }
  return lineup.take();
}

std::string repeat_command(const TuneOptions& options, const Candidate& candidate) {
  const auto anywhere = [](const std::filesystem::path& path) {
    std::error_code failure;
    const std::filesystem::path whole = std::filesystem::absolute(path, failure);
    return shell_quoted((failure ? path : whole).string());
  };
  std::string command = "hasten tune " + anywhere(options.model);
  for (const std::string& input : options.inputs) {
    command += " --input " + (looks_like_spec(input) ? shell_quoted(input) : anywhere(input));
  }
  if (!options.batch_sizes.empty()) {
    std::vector<std::string> sizes;
    for (const int64_t size : options.batch_sizes) sizes.push_back(format("{}", size));
    command += " --batch-sizes " + join(sizes, ",");
  }
  command += limits_of(options);
  for (const std::filesystem::path& plugin : options.plugins) {
    command += " --plugin " + anywhere(plugin);
  }
  command += " --strategy one-backend --backend " + shell_quoted(candidate.label());
  return command + format(" --seed {}", options.seed);
}

}  // namespace hasten
