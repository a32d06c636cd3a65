// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.h"

#include <unistd.h>

#include <cstdio>

#include "base/files.h"
#include "base/text.h"
#include "cli/commands.h"

namespace hasten {
namespace {

void put(std::FILE* stream, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stream);
}

// What a file or a plugin calls a thing may be meant for the terminal, not for its reader.
void put_text(std::FILE* stream, std::string_view text) { put(stream, printable(text)); }

// Lines behind the first are set in, so that no text can pass for a message of ours.
std::string set_in(std::string_view text) {
  std::string out;
  for (const char c : text) {
    out += c;
    if (c == '\n') out += "    ";
  }
  return out;
}

void put_result(std::string_view text) {
  put(stdout, text);
  if (text.empty() || text.back() != '\n') put(stdout, "\n");
  std::fflush(stdout);
}

}  // namespace

void print(std::string_view text) { put_result(printable(text)); }

void print_json(std::string_view text) { put_result(text); }

Status check_stdout() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return {};
  return Error{Code::kIo, "the result cannot be written to stdout",
               "is the disk full, or the file closed?"};
}

void print_warning(std::string_view text) {
  std::fflush(stdout);
  put_text(stderr, format("warning: {}\n", set_in(text)));
}

void print_note(std::string_view text) {
  std::fflush(stdout);
  put_text(stderr, format("note: {}\n", text));
}

void print_waiting(const std::string& names) {
  put_text(stderr, format("waiting for {}\n", names));
}

void print_error(const Error& error) {
  std::fflush(stdout);
  put_text(stderr, format("error: {}\n", set_in(error.message)));
  if (!error.hint.empty()) put_text(stderr, format("  hint: {}\n", set_in(error.hint)));
}

int exit_code(const Error& error) {
  switch (error.code) {
    case Code::kInvalidArgument:
      return kExitBadUsage;
    case Code::kUnavailable:
      return kExitUnavailable;
    case Code::kCancelled:
      return kExitInterrupted;
    case Code::kInternal:
      return kExitBug;
    default:
      return kExitNothingUsable;
  }
}

int fail(const Error& error) {
  print_error(error);
  return exit_code(error);
}

Status put_json(const Json& json, const std::string& where) {
  if (where.empty()) return {};
  if (where != "-") return write_file_atomically(where, json.dump(2) + "\n");
  print_json(json.dump(2));
  return {};
}

ProgressPrinter::ProgressPrinter(bool quiet)
    : quiet_(quiet), terminal_(isatty(STDERR_FILENO) != 0) {}

ProgressPrinter::~ProgressPrinter() { clear_line(); }

void ProgressPrinter::clear_line() {
  if (open_line_) put(stderr, "\r\033[K");
  open_line_ = false;
}

void ProgressPrinter::show(const TuneEvent& event) {
  if (event.kind == TuneEvent::Kind::kWarning) {
    clear_line();
    print_warning(event.text);
    return;
  }
  if (event.kind == TuneEvent::Kind::kTable) {
    clear_line();
    put_text(stderr, event.text + "\n");
    return;
  }
  if (quiet_) return;
  const std::string line = format("  {:<11} {}{}{}", event.stage, event.candidate,
                                  event.candidate.empty() ? "" : "  ", event.text);
  if (event.kind == TuneEvent::Kind::kProgress) {
    // Passing news: worth a look on a terminal, noise in a log.
    if (!terminal_) return;
    clear_line();
    put(stderr, printable_name(line));
    open_line_ = true;
    std::fflush(stderr);
    return;
  }
  clear_line();
  put_text(stderr, set_in(line) + "\n");
}

}  // namespace hasten
