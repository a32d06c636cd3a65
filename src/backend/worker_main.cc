// SPDX-License-Identifier: Apache-2.0
// The child's side of protocol.md, for a backend that is a library.
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <map>
#include <new>
#include <optional>
#include <thread>

#include "backend/input_slot.h"
#include "backend/library.h"
#include "backend/own_memory.h"
#include "backend/plugin_checks.h"
#include "backend/shared_memory.h"
#include "backend/wire.h"
#include "backend/worker.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/text.h"
#include "tensor/difference.h"

namespace hasten {
namespace {

using std::chrono::nanoseconds;

constexpr int kSocket = 3, kInputs = 4, kOutputs = 5;
constexpr size_t kMostCalls = 1'000'000;  // Of one turn: its reply stays within a message.

class Server {
 public:
  Server(BackendLibrary library, int threads)
      : library_(library),
        threads_(threads),
        in_(SharedMemory::of(kInputs)),
        out_(SharedMemory::of(kOutputs)) {}

  Json answer(const Json& request) {
    auto reply = guarded(request);
    if (reply) return *std::move(reply);
    return Json::object({{"error", to_json(reply.error())}});
  }

 private:
  using Handler = Result<Json> (Server::*)(const Json&);

  Result<Json> guarded(const Json& request) {
    static const std::map<std::string, Handler> handlers = {{"describe", &Server::describe},
                                                            {"probe", &Server::probe},
                                                            {"inspect", &Server::inspect},
                                                            {"candidates", &Server::candidates},
                                                            {"build", &Server::build},
                                                            {"save", &Server::save},
                                                            {"load", &Server::load},
                                                            {"inputs", &Server::inputs},
                                                            {"run", &Server::run},
                                                            {"audit", &Server::audit},
                                                            {"turn", &Server::turn},
                                                            {"memory", &Server::memory},
                                                            {"self_test", &Server::self_test}};
    const auto handler = handlers.find(request["op"].as_string());
    if (handler == handlers.end()) {
      return Error{Code::kInvalidArgument, format("no request '{}'", request["op"].as_string())};
    }
    try {
      // The host has read the last results by now: their memory is given back.
      HASTEN_TRY_STATUS(out_.resize(0));
      return (this->*handler->second)(request);
    } catch (const std::bad_alloc&) {
      return Error{Code::kOutOfMemory, "the worker is out of memory"};
    } catch (const std::exception& bug) {
      return Error{Code::kInternal, format("a bug in the worker: {}", bug.what())};
    }
  }

  Result<Json> describe(const Json&) {
    HASTEN_TRY(Json description, library_.describe());
    return Json::object({{"describe", std::move(description)}});
  }

  Result<Json> probe(const Json&) {
    HASTEN_TRY(Json facts, library_.probe(threads_));
    return Json::object({{"facts", std::move(facts)}});
  }

  Result<Json> inspect(const Json& request) {
    HASTEN_TRY(Json signature, library_.inspect(request["model"].as_string(),
                                                request["format"].as_string(), request["graph"]));
    return Json::object({{"signature", std::move(signature)}});
  }

  Result<Json> candidates(const Json& request) {
    HASTEN_TRY(Json list, library_.candidates(request["model"].as_string(),
                                              request["format"].as_string(), threads_));
    return Json::object({{"candidates", std::move(list)}});
  }

  Result<Json> build(const Json& request) {
    executable_.reset();  // Two builds at once may not fit into memory.
    Candidate candidate{.backend = std::string(library_.name()), .config = {}};
    for (const auto& [key, value] : request["config"].members()) {
      candidate.config[key] = value.as_string();
    }
    HASTEN_TRY(
        Executable built,
        library_.build(request["model"].as_string(), request["format"].as_string(),
                       request["graph"], candidate, threads_, request["work_dir"].as_string()));
    executable_ = std::move(built);
    return arity();
  }

  Result<Json> save(const Json& request) {
    HASTEN_TRY(const Executable* executable, built());
    HASTEN_TRY_STATUS(make_folder(request["dir"].as_string()));
    HASTEN_TRY_STATUS(executable->save(request["dir"].as_string()));
    return Json::object();
  }

  Result<Json> load(const Json& request) {
    executable_.reset();
    HASTEN_TRY(Executable loaded, library_.load(request["dir"].as_string(), threads_));
    executable_ = std::move(loaded);
    return arity();
  }

  Result<Json> inputs(const Json& request) {
    HASTEN_TRY(InputSlot slot, InputSlot::read(in_, request["tensors"]));
    slots_.insert_or_assign(request["slot"].as_int(), std::move(slot));
    return Json::object();
  }

  Result<Json> run(const Json& request) {
    HASTEN_TRY(const Executable* executable, built());
    HASTEN_TRY(InputSlot * slot, slot_of(request["slot"]));
    slot->restore();
    std::vector<Tensor> outputs(executable->n_outputs());
    const nanoseconds start = real_clock().now();
    HASTEN_TRY_STATUS(executable->run(slot->views(), outputs));
    const nanoseconds duration = real_clock().now() - start;

    for (Tensor& output : outputs) {
      if (!output.is_compact()) output = output.clone();
    }
    const Placement placement = place(outputs);
    HASTEN_TRY_STATUS(out_.write(outputs, placement));
    Json tensors = Json::array();
    for (const TensorLayout& layout : placement.layouts) tensors.push(layout.to_json());
    return Json::object(
        {{"outputs", std::move(tensors)}, {"duration_ns", static_cast<int64_t>(duration.count())}});
  }

  Result<Json> audit(const Json& request) {
    HASTEN_TRY(const Executable* executable, built());
    HASTEN_TRY(InputSlot * slot, slot_of(request["slot"]));
    HASTEN_TRY(InputSlot * other, slot_of(request["other"]));
    slot->restore();
    std::vector<Tensor> first(executable->n_outputs()), second(executable->n_outputs());
    HASTEN_TRY_STATUS(executable->run(slot->views(), first));

    Json written = Json::array(), aliases = Json::array();
    for (const size_t i : slot->written()) written.push(i);
    for (size_t o = 0; o < first.size(); ++o) {
      for (size_t i = 0; i < slot->views().size(); ++i) {
        if (slot->overlaps(i, first[o])) aliases.push(Json::Array{Json(o), Json(i)});
      }
    }
    std::vector<Tensor> copies;
    for (const Tensor& output : first) copies.push_back(output.clone());
    other->restore();
    HASTEN_TRY_STATUS(executable->run(other->views(), second));
    const bool same = std::equal(first.begin(), first.end(), copies.begin(), identical);
    return Json::object({{"written_inputs", std::move(written)},
                         {"aliases", std::move(aliases)},
                         {"first_result_changed", !same}});
  }

  Result<Json> turn(const Json& request) {
    HASTEN_TRY(const Executable* executable, built());
    HASTEN_TRY(InputSlot * slot, slot_of(request["slot"]));
    const nanoseconds budget(request["budget_ns"].as_int());
    const bool fresh = request["fresh_inputs"].as_bool();
    slot->restore();
    std::vector<Tensor> outputs(executable->n_outputs());
    durations_.clear();
    durations_.reserve(kMostCalls);  // Address space only; a page is touched every 512 calls.
    const nanoseconds begin = real_clock().now();
    nanoseconds start = begin;
    do {
      if (fresh) {
        slot->restore();
        start = real_clock().now();
      }
      // The results of the last call are freed within this one, as in a user's loop.
      HASTEN_TRY_STATUS(executable->run(slot->views(), outputs));
      const nanoseconds end = real_clock().now();
      durations_.push_back((end - start).count());
      start = end;
    } while (start - begin < budget && durations_.size() < kMostCalls);

    Json::Array times;
    times.reserve(durations_.size());
    for (const int64_t duration : durations_) times.emplace_back(duration);
    return Json::object({{"durations_ns", std::move(times)}});
  }

  Result<Json> memory(const Json&) {
    const auto peak = own_memory_bytes("VmHWM");
    if (!peak) return Error{Code::kIo, "/proc/self/status has no VmHWM"};
    return Json::object({{"peak_bytes", *peak}});
  }

  Result<Json> self_test(const Json& request) {
    const auto slot = slots_.find(request["slot"].as_int());
    if (!plugin_checks_) plugin_checks_.emplace(library_, threads_);
    return plugin_checks_->run(request, slot == slots_.end() ? nullptr : &slot->second);
  }

  Json arity() const {
    return Json::object(
        {{"n_inputs", executable_->n_inputs()}, {"n_outputs", executable_->n_outputs()}});
  }

  Result<const Executable*> built() const {
    if (!executable_) return Error{Code::kInvalidArgument, "nothing was built or loaded"};
    return &*executable_;
  }

  Result<InputSlot*> slot_of(const Json& index) {
    const auto slot = slots_.find(index.as_int(-1));
    if (slot == slots_.end()) return Error{Code::kInvalidArgument, "the slot has no inputs"};
    return &slot->second;
  }

  BackendLibrary library_;
  int threads_;
  SharedMemory in_, out_;
  std::optional<Executable> executable_;
  std::map<int64_t, InputSlot> slots_;
  std::vector<int64_t> durations_;
  std::optional<PluginChecks> plugin_checks_;
};

std::atomic<bool> busy = false;

// The host may go away while a call takes minutes. Nobody reads the answer then, and
// an idle worker sees the end itself; it gets a moment to destroy what it built.
void watch_host() {
  constexpr int kGraceMs = 2000;
  pollfd socket{kSocket, 0, 0};
  while (poll(&socket, 1, -1) < 0 && errno == EINTR) {
  }
  if (!busy) poll(nullptr, 0, kGraceMs);
  _exit(0);
}

bool send_all(std::string_view frame) {
  while (!frame.empty()) {
    const ssize_t n = send(kSocket, frame.data(), frame.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    frame.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

// None: the host is gone, or sent something that is no message.
std::optional<Json> next_request(std::string& received) {
  std::array<char, 16384> buffer;
  for (;;) {
    auto frame = first_frame(received);
    if (!frame) return std::nullopt;
    if (*frame) {
      received.erase(0, (*frame)->size);
      return std::move((*frame)->message);
    }
    const ssize_t n = recv(kSocket, buffer.data(), buffer.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    received.append(buffer.data(), static_cast<size_t>(n));
  }
}

}  // namespace

int run_worker(const std::filesystem::path& library, int threads) {
  constexpr int kUsage = 2;
  for (const int fd : {kSocket, kInputs, kOutputs}) {
    // What a plugin starts must not hold our end of the line open.
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) return kUsage;  // Started by hand.
  }
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);  // A crash is reported; its image would fill the disk.
  std::thread(watch_host).detach();

  auto opened = BackendLibrary::open(library);
  if (!opened) {
    send_all(to_frame(Json::object({{"error", to_json(opened.error())}})));
    return 1;
  }
  if (!send_all(to_frame(Json::object({{"protocol", 1},
                                       {"backend", opened->name()},
                                       {"version", opened->version()},
                                       {"pid", static_cast<int64_t>(getpid())}})))) {
    return 0;
  }
  Server server(*opened, threads);
  std::string received;
  while (const std::optional<Json> request = next_request(received)) {
    busy = true;
    const std::string reply = to_frame(server.answer(*request));
    busy = false;
    if (!send_all(reply)) break;
  }
  return 0;
}

}  // namespace hasten
