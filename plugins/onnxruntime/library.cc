// SPDX-License-Identifier: Apache-2.0
#include "library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include <onnxruntime_c_api.h>

#include "message.h"

namespace hasten {
namespace {

[[noreturn]] void unavailable(const std::string& reason) {
  throw PluginError(HASTEN_UNAVAILABLE,
                    reason +
                        "\n`pip install onnxruntime`, or set HASTEN_ONNXRUNTIME_LIBRARY to "
                        "the path of libonnxruntime.so");
}

// site-packages, when this is site-packages/hasten/plugins/hasten_onnxruntime.so.
std::filesystem::path packages_around() {
  Dl_info here{};
  if (dladdr(reinterpret_cast<const void*>(&packages_around), &here) == 0) return {};
  return std::filesystem::path(here.dli_fname).parent_path().parent_path().parent_path();
}

// The versioned names in the wheel's folder, the highest first: of the wheel beside, then of the
// one that was there when this was built.
std::vector<std::string> libraries_of_wheel() {
  std::vector<std::string> all;
  for (const auto& wheel : {packages_around() / "onnxruntime",
                            std::filesystem::path(HASTEN_ONNXRUNTIME_WHEEL)}) {
    std::vector<std::string> found;
    std::error_code absent;  // No wheel: the loader's own search is next.
    for (const auto& entry : std::filesystem::directory_iterator(wheel / "capi", absent)) {
      const std::string file = entry.path().filename();
      if (file.starts_with("libonnxruntime.so")) found.push_back(entry.path());
    }
    std::sort(found.rbegin(), found.rend());
    all.insert(all.end(), found.begin(), found.end());
  }
  return all;
}

}  // namespace

const OrtApi* ort = nullptr;

void check(OrtStatus* status, hasten_code fallback, std::string_view what) {
  if (!status) return;
  const OrtErrorCode code = ort->GetErrorCode(status);
  const std::string message = without_source_places(ort->GetErrorMessage(status));
  ort->ReleaseStatus(status);
  hasten_code ours = fallback;
  if (code == ORT_NOT_IMPLEMENTED) ours = HASTEN_UNSUPPORTED;
  if (code == ORT_NO_SUCHFILE) ours = HASTEN_INVALID_ARGUMENT;
  // The C API has no code of its own for this.
  if (message.find("bad_alloc") != message.npos ||
      message.find("Failed to allocate memory") != message.npos) {
    ours = HASTEN_OUT_OF_MEMORY;
  }
  const std::string remedy = remedy_for(message);
  if (!remedy.empty()) ours = HASTEN_UNSUPPORTED;
  throw PluginError(ours,
                    std::string(what) + ": " + message + (remedy.empty() ? "" : "\n" + remedy));
}

const Library& Library::get() {
  static const Library library;
  return library;
}

Library::Library() {
  // Microsoft's builds report use: creating the environment already writes an identifier of
  // the device and a session file, and starts to send. Off, whatever the API is asked later.
  ::setenv("ORT_DISABLE_TELEMETRY", "1", 0);
  void* handle = open();
  const auto base = reinterpret_cast<const OrtApiBase* (*)()>(dlsym(handle, "OrtGetApiBase"));
  if (!base) unavailable(path + " has no OrtGetApiBase");
  version = base()->GetVersionString();
  ort = base()->GetApi(ORT_API_VERSION);
  if (!ort) {
    unavailable("ONNX Runtime " + version + " is too old: the C API of version " +
                std::to_string(ORT_API_VERSION) + " is needed");
  }
  // Failures come back as statuses; the log would go to the user's stderr.
  check(ort->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "hasten", &env), HASTEN_UNAVAILABLE, path);
  check(ort->DisableTelemetryEvents(env), HASTEN_UNAVAILABLE, path);
  check(ort->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory),
        HASTEN_UNAVAILABLE, path);
}

// A path given by the user is the only one tried: another library in its place would
// be a surprise.
void* Library::open() {
  std::vector<std::string> names;
  if (const char* given = std::getenv("HASTEN_ONNXRUNTIME_LIBRARY"); given && *given) {
    std::error_code unknown;
    // The loader would wait for what comes out of a pipe.
    if (std::filesystem::is_other(given, unknown)) {
      unavailable(std::string(given) + " is no regular file");
    }
    names.emplace_back(given);
  } else {
    names = libraries_of_wheel();
    names.emplace_back("libonnxruntime.so.1");
  }
  std::string reason;
  for (const std::string& name : names) {
    if (void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      path = name;
      return handle;
    }
    reason = dlerror();
  }
  unavailable(reason);
}

}  // namespace hasten
