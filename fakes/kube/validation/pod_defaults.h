// What an API server fills in of a pod, and of the template of one (kubernetes 1.27: pkg/apis/core/v1/defaults.go and
// the admission plugins that are on by default).
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "nlohmann/json.hpp"

namespace wavetank::fakekube {

// Sets `key` of the object `in` unless it is there; what is there already costs no copy of `value`. An empty text is
// not there: Kubernetes' defaults look for the zero of Go's type (pkg/apis/*/v1/defaults.go), which a text's is.
template <class Value>
void Default(nlohmann::json& in, const char* key, Value&& value) {
  const auto it = in.find(key);
  if (it == in.end() || it->is_null() || (it->is_string() && it->template get_ref<const std::string&>().empty()))
    in[key] = std::forward<Value>(value);
}

// The same of a number that Go holds without a pointer: 0 is not there either.
inline void DefaultNumber(nlohmann::json& in, const char* key, int64_t value) {
  const auto it = in.find(key);
  if (it == in.end() || it->is_null() || *it == 0) in[key] = value;
}

// The object at `key`, made if there is none.
inline nlohmann::json& ObjectAt(nlohmann::json& in, const char* key) {
  nlohmann::json& at = in[key];
  if (!at.is_object()) at = nlohmann::json::object();
  return at;
}

// Of any PodSpec, a workload's template included.
void DefaultPodSpec(nlohmann::json& spec);

// Of a Pod besides: its ServiceAccount, priority and tolerations as the admission plugins ServiceAccount, Priority and
// DefaultTolerationSeconds leave them, requests from limits, its quality of service. The volume with its
// ServiceAccount's token is left out: pods of a simulated world talk to no API server.
void DefaultPod(nlohmann::json& pod);

}  // namespace wavetank::fakekube
