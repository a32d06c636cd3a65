// SPDX-License-Identifier: Apache-2.0
#include "base/spawn.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <system_error>

#include "base/files.h"
#include "base/text.h"

namespace hasten {
namespace fs = std::filesystem;
namespace {

enum class Step : int { kSetUp, kFolder, kExec };

// What the child says through the pipe when it does not reach its program.
struct SpawnFailure {
  Step step;
  int error_number;
};

std::vector<std::string> merged_environment(const std::map<std::string, std::string>& added) {
  std::vector<std::string> merged;
  for (char** variable = environ; variable && *variable; ++variable) {
    const std::string_view text = *variable;
    if (!added.contains(std::string(text.substr(0, text.find('='))))) merged.emplace_back(text);
  }
  for (const auto& [key, value] : added) merged.push_back(key + "=" + value);
  return merged;
}

std::string search_path(const std::vector<std::string>& environment) {
  for (const std::string& variable : environment) {
    if (variable.starts_with("PATH=")) return variable.substr(5);
  }
  return "/usr/local/bin:/usr/bin:/bin";
}

// As execvp() would find it, but before the fork, so that the reason can be said.
Result<std::string> find_program(const std::string& name,
                                 const std::vector<std::string>& environment) {
  const auto unavailable = [&](int reason) {
    return Error{Code::kUnavailable,
                 format("cannot start '{}': {}", name, std::generic_category().message(reason)),
                 "install it, or check the path"};
  };
  const auto why_not = [](const fs::path& path) {
    std::error_code failure;
    const fs::file_status status = fs::status(path, failure);
    if (status.type() == fs::file_type::not_found) return ENOENT;
    if (failure) return failure.value();
    if (status.type() == fs::file_type::directory) return EISDIR;
    return ::access(path.c_str(), X_OK) == 0 ? 0 : errno;
  };
  if (name.find('/') != std::string::npos) {
    if (const int reason = why_not(name)) return unavailable(reason);
    return fs::absolute(name).string();
  }
  int reason = ENOENT;
  for (const std::string& folder : split(search_path(environment), ':')) {
    const fs::path path = fs::path(folder.empty() ? "." : folder) / name;
    const int refusal = name.empty() ? ENOENT : why_not(path);
    if (refusal == 0) return fs::absolute(path).string();
    // A folder that may not be searched says nothing about the program.
    std::error_code ignored;
    if (refusal == EACCES && fs::exists(path, ignored)) reason = EACCES;
  }
  return unavailable(reason);
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

// All below runs in the child, between fork and exec.

[[noreturn]] void give_up(int pipe, Step step) {
  const SpawnFailure failure{step, errno};
  // Nobody is left to tell when the pipe is broken too.
  [[maybe_unused]] const ssize_t told = ::write(pipe, &failure, sizeof failure);
  ::_exit(127);
}

void reset_signals() {
  // exec keeps what is ignored, and the host may be a Python or a server that ignores some.
  struct sigaction by_default {};
  by_default.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &by_default, nullptr);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void set_limits() {
  // A crash is a result here; an image of several gigabytes in the working folder is not.
  rlimit core{};
  ::getrlimit(RLIMIT_CORE, &core);
  core.rlim_cur = 0;
  ::setrlimit(RLIMIT_CORE, &core);
  // When memory ends the kernel should take the candidate, not the tuner.
  const int file = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file >= 0) {
    [[maybe_unused]] const ssize_t put = ::write(file, "500", 3);
    ::close(file);
  }
}

// Returns false with errno set.
bool place_descriptors(const SpawnPlan& plan, int* high, int* pipe) {
  const size_t count = plan.inherited.size();
  const int first_free = 3 + static_cast<int>(count);
  // First all of them out of the way: a source may be the place of another.
  const auto lift = [&](int fd) { return ::fcntl(fd, F_DUPFD_CLOEXEC, first_free); };
  if ((*pipe = lift(*pipe)) < 0) return false;
  const int input = lift(plan.input.get());
  const int output = lift(plan.output.get());
  if (input < 0 || output < 0) return false;
  for (size_t i = 0; i < count; ++i) {
    if ((high[i] = lift(plan.inherited[i])) < 0) return false;
  }
  if (::dup2(input, 0) < 0 || ::dup2(output, 1) < 0 || ::dup2(output, 2) < 0) return false;
  for (size_t i = 0; i < count; ++i) {
    if (::dup2(high[i], 3 + static_cast<int>(i)) < 0) return false;
  }
  // The host's libraries may have opened files without O_CLOEXEC.
  if (::close_range(static_cast<unsigned>(first_free), ~0u, CLOSE_RANGE_CLOEXEC) == 0) return true;
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  const rlim_t last = std::min<rlim_t>(files.rlim_cur, 65536);
  for (int fd = first_free; static_cast<rlim_t>(fd) < last; ++fd) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  return true;
}

struct ChildPlan {
  const SpawnPlan* plan;
  char* const* arguments;
  char* const* environment;
  int* lifted;  // Room for one number per inherited descriptor.
  int pipe;
  pid_t parent;
};

[[noreturn]] void become(ChildPlan child) {
  ::setpgid(0, 0);
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) give_up(child.pipe, Step::kSetUp);
  // The parent may have died before that call; then no signal will come.
  if (::getppid() != child.parent) ::_exit(127);
  reset_signals();
  set_limits();
  int pipe = child.pipe;
  if (!place_descriptors(*child.plan, child.lifted, &pipe)) {
    give_up(pipe < 0 ? child.pipe : pipe, Step::kSetUp);
  }
  const fs::path& folder = child.plan->folder;
  if (!folder.empty() && ::chdir(folder.c_str()) != 0) give_up(pipe, Step::kFolder);
  ::execve(child.plan->program.c_str(), child.arguments, child.environment);
  give_up(pipe, Step::kExec);
}

Error explain(const SpawnPlan& plan, const SpawnFailure& failure) {
  if (failure.step == Step::kFolder) {
    return file_error(format("starting '{}' in folder", plan.name), plan.folder,
                      failure.error_number);
  }
  const std::string reason = std::generic_category().message(failure.error_number);
  const bool no_memory = failure.error_number == ENOMEM || failure.error_number == EAGAIN;
  const Code code = no_memory                     ? Code::kOutOfMemory
                    : failure.step == Step::kExec ? Code::kUnavailable
                                                  : Code::kIo;
  return {code, format("cannot start '{}': {}", plan.name, reason),
          failure.error_number == EAGAIN ? "raise the limit of processes (ulimit -u)" : ""};
}

}  // namespace

Result<SpawnPlan> plan_spawn(const ChildOptions& options) {
  if (options.command.empty()) throw std::logic_error("a child process needs a command");
  SpawnPlan plan;
  plan.name = options.command.front();
  plan.environment = merged_environment(options.environment);
  HASTEN_TRY(plan.program, find_program(plan.name, plan.environment));
  plan.arguments = options.command;
  if (options.supervised) {
    HASTEN_TRY(const fs::path guard, command_path());
    // The guard gets the path that was found: it need not search again.
    plan.arguments.front() = plan.program;
    plan.program = guard.string();
    plan.arguments.insert(plan.arguments.begin(), {plan.program, "guard"});
  }
  plan.folder = options.folder;
  plan.inherited = options.inherited;
  HASTEN_TRY(plan.input, open_file("/dev/null", O_RDONLY));
  HASTEN_TRY(plan.output, open_file(options.log.empty() ? "/dev/null" : options.log,
                                    O_WRONLY | O_CREAT | O_APPEND));
  return plan;
}

Result<int> spawn(const SpawnPlan& plan) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return explain(plan, {Step::kSetUp, errno});
  const FileDescriptor from_child(ends[0]);
  FileDescriptor to_parent(ends[1]);
  const std::vector<char*> arguments = pointers(plan.arguments);
  const std::vector<char*> environment = pointers(plan.environment);
  std::vector<int> lifted(plan.inherited.size());
  const ChildPlan child{&plan,         arguments.data(), environment.data(),
                        lifted.data(), to_parent.get(),  ::getpid()};
  // No handler of the host may run in the child before its signals are reset.
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  // Not fork(): the handlers that libraries register for it (OpenMP, Python) may hang or be slow.
  const pid_t pid = ::_Fork();
  if (pid == 0) become(child);
  const int fork_error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return explain(plan, {Step::kSetUp, fork_error});
  to_parent.reset();
  // exec closes the pipe; until then the child may have something to say.
  SpawnFailure failure{};
  HASTEN_TRY(const size_t got, read_some(from_child, reinterpret_cast<char*>(&failure),
                                         sizeof failure, plan.program));
  if (got == 0) return pid;
  ::waitpid(pid, nullptr, 0);
  return explain(plan, failure);
}

}  // namespace hasten
