// SPDX-License-Identifier: Apache-2.0
#include "options.h"

namespace hasten {

const Description& torchscript_description() {
  static const Description description = {
      .title = "TorchScript, run by libtorch",
      .formats = {kTorchScript},
      .inspects = {kTorchScript},
      .options = {
          {.name = "mode",
           .type = "enum",
           .default_value = "frozen",
           .help = "eager: operator by operator; script: by the profiling executor; frozen: "
                   "constants folded, convolutions and batch norms fused",
           .choices = {"eager", "script", "frozen"}},
          {.name = "precision",
           .type = "enum",
           .default_value = "native",
           .help = "float64: every floating-point number in double, for reference",
           .choices = {"native", "float64"}},
          {.name = "threads",
           .type = "int",
           .default_value = "0",
           .help = "threads of one operator; 0: what the process may use"},
          {.name = "layout",
           .type = "enum",
           .default_value = "contiguous",
           .help = "how images and convolution weights lie in memory",
           .choices = {"contiguous", "channels_last"}},
          {.name = "denormals_as_zero",
           .type = "bool",
           .default_value = "false",
           .help = "numbers below 1e-38 count as zero; in torch's own threads, which all models "
                   "of the process share, from then on"},
      }};
  return description;
}

std::vector<ConfigProposal> torchscript_candidates(std::string_view format) {
  if (format != kTorchScript) return {{"default", {{"mode", "frozen"}}}};
  return {{"baseline", {{"mode", "eager"}}},
          {"oracle", {{"mode", "eager"}, {"precision", "float64"}}},
          {"default", {{"mode", "frozen"}}},
          {"default", {{"mode", "script"}}},
          {"extra", {{"mode", "frozen"}, {"layout", "channels_last"}}},
          {"extra", {{"mode", "frozen"}, {"threads", "1"}}},
          {"extra", {{"mode", "frozen"}, {"denormals_as_zero", "true"}}}};
}

}  // namespace hasten
