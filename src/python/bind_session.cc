// SPDX-License-Identifier: Apache-2.0
#include <hasten/runtime.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <string>
#include <tuple>
#include <vector>

#include "python/bindings.h"
#include "python/raise.h"
#include "python/tensors.h"

namespace nb = nanobind;

namespace hasten {
namespace {

using Info = std::tuple<std::string, std::string, std::vector<std::string>>;

std::vector<Info> infos(const std::vector<TensorInfo>& tensors) {
  std::vector<Info> all;
  for (const TensorInfo& t : tensors) all.emplace_back(t.name, to_string(t.dtype), t.axes);
  return all;
}

Session load(const std::filesystem::path& path, int threads, bool verify) {
  LoadOptions options;
  options.threads = threads;
  options.verify = verify;
  auto session = [&] {
    const nb::gil_scoped_release others_go_on;
    return Session::load(path, options);
  }();
  return value_or_raise(std::move(session));
}

// The views live on the stack for the usual number of tensors: a call allocates for its
// outputs and nothing else.
template <class T>
class Few {
 public:
  explicit Few(size_t count) {
    if (count > few_.size()) many_.resize(count);
    span_ = count > few_.size() ? std::span<T>(many_) : std::span<T>(few_).first(count);
  }
  std::span<T> span() { return span_; }

 private:
  std::array<T, 16> few_{};
  std::vector<T> many_;
  std::span<T> span_;
};

nb::list run(const Session& session, const nb::list& inputs, nb::handle like) {
  const DLPackExchangeAPI& api = exchange_of(like);
  Few<DLTensor> views(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) views.span()[i] = view_of(exchange_of(inputs[i]), inputs[i]);
  Few<Tensor> outputs(session.outputs().size());
  const Status done = [&] {
    const nb::gil_scoped_release others_go_on;
    return session.run(views.span(), outputs.span());
  }();
  raise_if_failed(done);
  return to_python(api, outputs.span());
}

}  // namespace

void bind_session(nb::module_& module) {
  nb::class_<Session>(module, "Session",
                      "A loaded artifact. run() may be called from several threads; the GIL is "
                      "released while the backend works.")
      .def_static("load", &load, nb::arg("path"), nb::arg("threads") = 0, nb::arg("verify") = true,
                  "Opens an artifact. threads: CPUs the backend may use, 0 for all. Raises "
                  "HastenError with the name of the file that is wrong.")
      .def_prop_ro("inputs", [](const Session& s) { return infos(s.inputs()); },
                   "(name, dtype, axes) of each input; an axis as in an input SPEC.")
      .def_prop_ro("outputs", [](const Session& s) { return infos(s.outputs()); },
                   "(name, dtype, axes) of each output.")
      .def_prop_ro("backend", &Session::backend, "The candidate in use: NAME:key=value,...")
      .def_prop_ro("warnings", [](const Session& s) { return s.warnings(); })
      .def("run", &run, nb::arg("inputs"), nb::arg("like"),
           "The outputs for `inputs`, tensors in the order of `inputs`, in any strides. The results "
           "are tensors of the framework of the tensor `like`.");
}

}  // namespace hasten
