// SPDX-License-Identifier: Apache-2.0
// Writing a plugin in C++: derive from PluginBackend and PluginExecutable, put
// HASTEN_EXPORT_BACKEND(MyBackend, ...) at the end of the one .cc file. This header
// builds the C table and turns every exception into a code and a message.
// It is compiled into the plugin and is no part of the ABI.
#pragma once

#include <hasten/plugin.h>

#include <array>
#include <charconv>
#include <exception>
#include <map>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace hasten {

// The one exception type a plugin throws on purpose.
class PluginError : public std::runtime_error {
 public:
  PluginError(hasten_code why, const std::string& message)
      : std::runtime_error(message), code(why) {}
  hasten_code code;
};

struct ManagedDeleter {
  void operator()(DLManagedTensorVersioned* t) const {
    if (t && t->deleter) t->deleter(t);
  }
};
using OwnedTensor = std::unique_ptr<DLManagedTensorVersioned, ManagedDeleter>;

namespace plugin_detail {

inline std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (u < 0x20) {
      constexpr char kHex[] = "0123456789abcdef";
      out += "\\u00";
      out += kHex[u >> 4];
      out += kHex[u & 15];
    } else {
      out += c;
    }
  }
  return out += '"';
}

}  // namespace plugin_detail

// One setting that a plugin understands. An empty default means "not set".
struct OptionSpec {
  std::string name;
  std::string type;  // "int", "bool", "float", "enum"
  std::string default_value;
  std::string help;
  std::vector<std::string> choices{};  // For "enum".
  std::string stage = "build";         // "compile": for the compiler, not for build().
};

// The settings of one build, checked against the plugin's own list.
class Options {
 public:
  Options(std::span<const OptionSpec> known, std::span<const hasten_option> given,
          std::string_view backend) {
    for (const OptionSpec& spec : known) {
      if (spec.stage == "build") values_[spec.name] = spec.default_value;
    }
    for (const hasten_option& option : given) {
      const OptionSpec* spec = nullptr;
      for (const OptionSpec& candidate : known) {
        if (candidate.name == option.key) spec = &candidate;
      }
      if (!spec) {
        std::string names;
        for (const OptionSpec& s : known) names += (names.empty() ? "" : ", ") + s.name;
        throw PluginError(HASTEN_INVALID_ARGUMENT,
                          std::string(backend) + ": unknown option '" + option.key +
                              "'; known options: " + (names.empty() ? "none" : names));
      }
      check(*spec, option.value, backend);
      values_[spec->name] = option.value;
    }
  }

  // Every known option of the stage "build", set or not: what save() writes down.
  const std::map<std::string, std::string>& values() const { return values_; }
  bool has(const std::string& name) const { return !values_.at(name).empty(); }
  const std::string& text(const std::string& name) const { return values_.at(name); }
  bool flag(const std::string& name) const { return values_.at(name) == "true"; }
  int integer(const std::string& name) const {
    int value = 0;
    const std::string& text = values_.at(name);
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  }
  double number(const std::string& name) const {
    double value = 0;
    const std::string& text = values_.at(name);
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  }

 private:
  static void check(const OptionSpec& spec, const std::string& value, std::string_view backend) {
    const auto refuse = [&](const std::string& wanted) {
      throw PluginError(HASTEN_INVALID_ARGUMENT, std::string(backend) + ": option '" + spec.name +
                                                     "' wants " + wanted + ", not '" + value + "'");
    };
    if (spec.type == "bool" && value != "true" && value != "false") refuse("true or false");
    if (spec.type == "int") {
      int parsed = 0;
      const auto [end, failure] =
          std::from_chars(value.data(), value.data() + value.size(), parsed);
      if (failure != std::errc() || end != value.data() + value.size() || parsed < 0) {
        refuse("a whole number of at least 0");
      }
    }
    if (spec.type == "float") {
      double parsed = 0;
      const auto [end, failure] =
          std::from_chars(value.data(), value.data() + value.size(), parsed);
      if (failure != std::errc() || end != value.data() + value.size()) refuse("a number");
    }
    if (spec.type == "enum") {
      std::string names;
      for (const std::string& choice : spec.choices) {
        if (choice == value) return;
        names += (names.empty() ? "" : ", ") + choice;
      }
      refuse("one of " + names);
    }
  }

  std::map<std::string, std::string> values_;
};

// A configuration worth trying; see `candidates` in plugin.h for the roles.
struct ConfigProposal {
  std::string role;
  std::map<std::string, std::string> config;
};

class PluginExecutable {
 public:
  virtual ~PluginExecutable() = default;
  virtual void run(std::span<const DLTensor> inputs, std::span<OwnedTensor> outputs) = 0;
  virtual void save(const std::string& dir) = 0;
  virtual std::pair<size_t, size_t> arity() = 0;  // Inputs, outputs.
};

struct Description {
  std::string title;
  std::vector<std::string> formats;   // What build() takes, best first.
  std::vector<std::string> inspects;  // What inspect() answers for.
  std::vector<OptionSpec> options;
};

class PluginBackend {
 public:
  virtual ~PluginBackend() = default;
  virtual const Description& describe() = 0;
  virtual std::string probe(const hasten_device& device) = 0;  // Facts as JSON, or throw.
  virtual std::string inspect(const hasten_model& model) {
    throw PluginError(HASTEN_UNSUPPORTED, std::string("cannot read the format ") + model.format);
  }
  virtual std::vector<ConfigProposal> candidates(const hasten_model& model,
                                                 const hasten_device& device) = 0;
  virtual std::unique_ptr<PluginExecutable> build(const hasten_model& model,
                                                  const hasten_device& device,
                                                  const Options& options,
                                                  const std::string& work_dir) = 0;
  virtual std::unique_ptr<PluginExecutable> load(const std::string& dir,
                                                 const hasten_device& device) = 0;
};

namespace plugin_detail {

inline void put(hasten_sink* sink, std::string_view text) {
  if (sink) sink->write(sink, text.data(), text.size());
}

// An object, not a function: <iomanip>'s std::quoted is found by argument otherwise.
constexpr auto json_text = [](std::string_view text) { return plugin_detail::quoted(text); };

inline std::string list_of(std::span<const std::string> items) {
  std::string out = "[";
  for (const std::string& item : items) out += (out.size() > 1 ? "," : "") + json_text(item);
  return out + "]";
}

inline std::string to_json(const Description& d) {
  std::string options;
  for (const OptionSpec& o : d.options) {
    options += (options.empty() ? "" : ",") + ("{\"name\":" + json_text(o.name)) +
               ",\"type\":" + json_text(o.type) + ",\"default\":" + json_text(o.default_value) +
               ",\"help\":" + json_text(o.help) + ",\"stage\":" + json_text(o.stage) +
               ",\"choices\":" + list_of(o.choices) + "}";
  }
  return "{\"title\":" + json_text(d.title) + ",\"formats\":" + list_of(d.formats) +
         ",\"inspects\":" + list_of(d.inspects) + ",\"options\":[" + options + "]}";
}

inline std::string to_json(std::span<const ConfigProposal> proposals) {
  std::string out = "[";
  for (const ConfigProposal& p : proposals) {
    std::string config;
    for (const auto& [key, value] : p.config) {
      config += (config.empty() ? "" : ",") + json_text(key) + ":" + json_text(value);
    }
    out += (out.size() > 1 ? "," : "") + ("{\"role\":" + json_text(p.role)) + ",\"config\":{" +
           config + "}}";
  }
  return out + "]";
}

// Every entry goes through here; no other function catches everything.
template <class F>
hasten_code guard(hasten_sink* error, F&& body) noexcept {
  try {
    body();
    return HASTEN_OK;
  } catch (const PluginError& e) {
    put(error, e.what());
    return e.code;
  } catch (const std::bad_alloc&) {
    put(error, "out of host memory");
    return HASTEN_OUT_OF_MEMORY;
  } catch (const std::exception& e) {
    put(error, e.what());
    return HASTEN_INTERNAL;
  } catch (...) {
    put(error, "an exception that is no std::exception");
    return HASTEN_INTERNAL;
  }
}

inline PluginExecutable* of(hasten_executable* e) {
  return reinterpret_cast<PluginExecutable*>(e);
}
inline hasten_executable* hand_out(std::unique_ptr<PluginExecutable> e) {
  return reinterpret_cast<hasten_executable*>(e.release());
}

// Most models have a few outputs: their holders live on the stack, so that a
// call allocates nothing beyond what the framework allocates.
constexpr size_t kOutputsOnStack = 16;

inline void run(PluginExecutable& executable, std::span<const DLTensor> inputs,
                std::span<DLManagedTensorVersioned*> outputs) {
  std::array<OwnedTensor, kOutputsOnStack> few;
  std::vector<OwnedTensor> many;
  if (outputs.size() > few.size()) many.resize(outputs.size());
  const std::span<OwnedTensor> made =
      many.empty() ? std::span(few).first(outputs.size()) : std::span(many);
  executable.run(inputs, made);
  for (size_t i = 0; i < outputs.size(); ++i) outputs[i] = made[i].release();
}

// Made by the first call that needs it, inside guard(): what its constructor throws becomes the
// answer of that call, and the next one tries again.
template <class B>
B& the() {
  static B backend;
  return backend;
}

template <class B>
const hasten_backend_api* table(const char* name, const char* version, uint32_t traits) {
  static const char* const backend_name = name;
  static const hasten_backend_api api = {
      .struct_size = sizeof(hasten_backend_api),
      .traits = traits,
      .name = name,
      .version = version,
      .describe = [](hasten_sink* s) -> hasten_code {
        return guard(s, [&] { put(s, to_json(the<B>().describe())); });
      },
      .probe = [](const hasten_device* d, hasten_sink* s) -> hasten_code {
        return guard(s, [&] { put(s, the<B>().probe(*d)); });
      },
      .inspect = [](const hasten_model* m, hasten_sink* out, hasten_sink* err) -> hasten_code {
        return guard(err, [&] { put(out, the<B>().inspect(*m)); });
      },
      .candidates = [](const hasten_model* m, const hasten_device* d, hasten_sink* out,
                       hasten_sink* err) -> hasten_code {
        return guard(err, [&] { put(out, to_json(the<B>().candidates(*m, *d))); });
      },
      .build = [](const hasten_model* m, const hasten_device* d, const hasten_option* options,
                  size_t n_options, const char* dir, hasten_executable** out,
                  hasten_sink* err) -> hasten_code {
        return guard(err, [&] {
          const Options checked(the<B>().describe().options, {options, n_options}, backend_name);
          *out = hand_out(the<B>().build(*m, *d, checked, dir));
        });
      },
      .save = [](hasten_executable* e, const char* dir, hasten_sink* err) -> hasten_code {
        return guard(err, [&] { of(e)->save(dir); });
      },
      .load = [](const char* dir, const hasten_device* d, hasten_executable** out,
                 hasten_sink* err) -> hasten_code {
        return guard(err, [&] { *out = hand_out(the<B>().load(dir, *d)); });
      },
      .arity = [](hasten_executable* e, size_t* n_in, size_t* n_out) -> hasten_code {
        return guard(nullptr, [&] { std::tie(*n_in, *n_out) = of(e)->arity(); });
      },
      .run = [](hasten_executable* e, const DLTensor* in, size_t n_in,
                DLManagedTensorVersioned** out, size_t n_out, hasten_sink* err) -> hasten_code {
        return guard(err, [&] { plugin_detail::run(*of(e), {in, n_in}, {out, n_out}); });
      },
      .destroy = [](hasten_executable* e) { guard(nullptr, [&] { delete of(e); }); },
  };
  return &api;
}

}  // namespace plugin_detail
}  // namespace hasten

#define HASTEN_EXPORT_BACKEND(Class, name, version, traits)                              \
  extern "C" __attribute__((visibility("default"))) const hasten_backend_api*            \
  hasten_backend_entry(uint32_t major, uint32_t minor) {                                 \
    if (major != HASTEN_ABI_MAJOR || minor != HASTEN_ABI_MINOR) return nullptr;           \
    return ::hasten::plugin_detail::table<Class>(name, version, traits);                 \
  }
