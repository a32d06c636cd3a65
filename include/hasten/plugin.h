/* SPDX-License-Identifier: Apache-2.0
 * hasten/plugin.h: everything a backend plugin and the host must agree on.
 *
 * Plain C11, so that a plugin may be built by any compiler, against any C++
 * library, with or without exceptions. Depends on dlpack.h and nothing else.
 *
 * Rules that hold for every function below:
 *   - No exception, signal or exit() leaves the plugin.
 *   - Pointers passed in are borrowed for the call. Nothing is kept.
 *   - Text leaves through a hasten_sink; the host copies it at once.
 *   - JSON in and out is UTF-8 and is never on the path of run().
 *   - Unless HASTEN_TRAIT_CONCURRENT_RUN is set, the host calls one executable
 *     from one thread at a time.
 */
#ifndef HASTEN_PLUGIN_H_
#define HASTEN_PLUGIN_H_

#include <dlpack/dlpack.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* While MAJOR is 0 host and plugin must match exactly. From 1.0 on, a field is
 * only ever added at the end of a struct, and MINOR counts the additions
 * (docs/plugin_abi_changelog.md). */
#define HASTEN_ABI_MAJOR 0
#define HASTEN_ABI_MINOR 2

typedef enum hasten_code {
  HASTEN_OK = 0,
  HASTEN_UNAVAILABLE = 1,      /* not on this machine: library, driver, device */
  HASTEN_UNSUPPORTED = 2,      /* not for this model: operator, dtype, shape */
  HASTEN_INVALID_ARGUMENT = 3, /* the caller's mistake */
  HASTEN_BUILD_FAILED = 4,
  HASTEN_RUN_FAILED = 5,
  HASTEN_OUT_OF_MEMORY = 6,
  HASTEN_INTERNAL = 7          /* the plugin's own bug */
} hasten_code;

enum {
  HASTEN_TRAIT_CONCURRENT_RUN = 1u << 0 /* run() of one executable from several threads */
};

typedef struct hasten_sink {
  void (*write)(struct hasten_sink* self, const char* text, size_t size);
} hasten_sink;

typedef struct hasten_device {
  uint32_t struct_size;
  DLDevice device;
  int32_t threads; /* CPUs this process may use; what "threads=0" means */
} hasten_device;

/* One setting of a configuration, as the user wrote it: "threads", "2". */
typedef struct hasten_option {
  const char* key;
  const char* value;
} hasten_option;

typedef struct hasten_model {
  uint32_t struct_size;
  const char* path;       /* the file, in one of the formats that describe() lists */
  const char* format;     /* "onnx", "torchscript", "pt2", "aoti", ... */
  const char* graph_json; /* GraphSpec: names, dtypes, axes and their ranges; "{}" if unknown */
} hasten_model;

typedef struct hasten_executable hasten_executable; /* the plugin's own */

typedef struct hasten_backend_api {
  uint32_t struct_size; /* sizeof(hasten_backend_api) as the plugin saw it */
  uint32_t traits;
  const char* name;     /* stable key: CLI, cache, artifact. [a-z0-9_-] */
  const char* version;  /* of the plugin itself */

  /* What the backend is, without loading its framework: a JSON object
   *   {"title": "...", "formats": ["onnx"], "inspects": ["onnx"],
   *    "options": [{"name","type":"int|bool|enum|float","default","choices":[..],
   *                 "stage":"build|compile","help"}]}
   * "formats": what build() takes, best first. An option of stage "compile" is
   * for the compiler that makes that format out of the user's file, not for build(). */
  hasten_code (*describe)(hasten_sink* json);

  /* Can this backend work here? Under 100 ms plus the loading of its library,
   * no files written, no device memory held. On HASTEN_UNAVAILABLE `text` is one
   * sentence for a person, a second line is the remedy; on HASTEN_OK a JSON
   * object of facts, "library_version" among them. */
  hasten_code (*probe)(const hasten_device*, hasten_sink* text);

  /* The file's own signature as JSON:
   *   {"inputs": [{"name","dtype"?,"shape"?:[int|"symbol"],"optional"?}], "outputs": [...]}
   * With a `graph_json` whose inputs are known, also what only a call can tell.
   * HASTEN_UNSUPPORTED for a format that describe() does not list under "inspects". */
  hasten_code (*inspect)(const hasten_model*, hasten_sink* signature_json, hasten_sink* error);

  /* The configurations worth trying for a user's file of this format, the best
   * guess first: [{"role": "...", "config": {"threads": "1"}}, ...] with role
   *   "baseline"  how a user of this format runs it today (at most one),
   *   "oracle"    the most exact way to run it, never chosen,
   *   "default"   tried unless the user names candidates,
   *   "lossy"     lower precision; tried only where the user allows a loss,
   *   "extra"     tried only when asked for.
   * `model->format` is the format of the user's file, not of what build() gets. */
  hasten_code (*candidates)(const hasten_model*, const hasten_device*, hasten_sink* json,
                           hasten_sink* error);

  /* Slow; runs in a child process; may write only under `work_dir`. An unknown
   * option is HASTEN_INVALID_ARGUMENT and the message lists the known ones. */
  hasten_code (*build)(const hasten_model*, const hasten_device*, const hasten_option* options,
                      size_t n_options, const char* work_dir, hasten_executable** out,
                      hasten_sink* error);

  /* All that load() needs, into the empty folder `dir`. */
  hasten_code (*save)(hasten_executable*, const char* dir, hasten_sink* error);
  hasten_code (*load)(const char* dir, const hasten_device*, hasten_executable** out,
                     hasten_sink* error);

  /* How many tensors run() takes and gives, in order, as in inspect(). */
  hasten_code (*arity)(hasten_executable*, size_t* n_inputs, size_t* n_outputs);

  /* The hot path. Inputs are views (strides always set and never negative: the host
   * copies what runs backwards; read-only unless the model itself writes its inputs).
   * On success *outputs[i] is owned by the caller, who calls its deleter. The result is
   * complete on return and stays valid after destroy(); strides are always written. */
  hasten_code (*run)(hasten_executable*, const DLTensor* inputs, size_t n_inputs,
                    struct DLManagedTensorVersioned** outputs, size_t n_outputs,
                    hasten_sink* error);

  void (*destroy)(hasten_executable*); /* NULL is allowed */
} hasten_backend_api;

/* The one exported symbol. Returns NULL if the ABI does not suit. */
typedef const hasten_backend_api* (*hasten_backend_entry_fn)(uint32_t abi_major,
                                                            uint32_t abi_minor);
#define HASTEN_BACKEND_ENTRY "hasten_backend_entry"

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* HASTEN_PLUGIN_H_ */
