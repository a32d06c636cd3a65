// SPDX-License-Identifier: Apache-2.0
// What the commands say to a person, and where: results to stdout, the rest to stderr.
#pragma once

#include <hasten/result.h>
#include <hasten/tune.h>

#include "base/json.h"

#include <string>
#include <string_view>

namespace hasten {

// Control characters in what is printed are escaped (see printable()), but for those in JSON,
// which has its own escapes. A name, which may hold line ends, is for printable_name() first.
void print(std::string_view text);          // stdout.
void print_json(std::string_view text);     // stdout, too.
void print_warning(std::string_view text);  // "warning: ..." on stderr.
void print_note(std::string_view text);     // "note: ..." on stderr.
void print_waiting(const std::string& names);  // "waiting for ..." on stderr.
void print_error(const Error& error);       // "error: ...", then "  hint: ..." on stderr.
// Did all that was printed arrive? A full disk takes what was printed without a word.
Status check_stdout();
// The exit code that an error leads to.
int exit_code(const Error& error);
// Prints and returns the exit code.
int fail(const Error& error);
// To a file (atomically), or to stdout for "-" (see check_stdout()); nothing for "".
Status put_json(const Json& json, const std::string& where);

// Progress on stderr: a line that renews itself on a terminal, plain lines in a log.
class ProgressPrinter {
 public:
  explicit ProgressPrinter(bool quiet);
  ~ProgressPrinter();
  void show(const TuneEvent& event);
  void done() { clear_line(); }  // Before the result is printed.

 private:
  void clear_line();
  bool quiet_, terminal_, open_line_ = false;
};

}  // namespace hasten
