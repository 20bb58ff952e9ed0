// What of a body Go could not read into the type of its kind, in the words of who reads it: encoding/json reads what is
// created, updated, merged or patched as JSON, runtime.FromUnstructured() what a strategic merge patch made.
#pragma once

#include <string>
#include <string_view>

#include "fakes/kube/http/api/api_types.h"
#include "nlohmann/json.hpp"

namespace wavetank::fakekube::http {

// encoding/json, of the first that cannot be read: "json: cannot unmarshal string into Go struct field
// DeploymentSpec.spec.replicas of type int32". "": all can. O(body).
std::string UnreadableField(const ApiType& type, const nlohmann::json& body);

// Of an object's metadata alone, as custom resources' is read: "json: cannot unmarshal object into Go struct field
// ObjectMeta.labels of type string" (apiextensions-apiserver: pkg/apiserver/schema/objectmeta, coerce.go). "": it can.
std::string UnreadableMetadata(const nlohmann::json& metadata);

// apimachinery: pkg/runtime/converter.go, fromUnstructured(): "unrecognized type: int32". "": it takes all of it, which
// is more than encoding/json does (8.0 is an integer). O(body).
std::string UnconvertibleField(const ApiType& type, const nlohmann::json& body);

// Of the kind and the version that a body must say before anything else is read of it (apimachinery:
// pkg/runtime/serializer/json, meta.go). "": they can be read, or are not there.
std::string UnreadableKind(const nlohmann::json& body);

}  // namespace wavetank::fakekube::http
