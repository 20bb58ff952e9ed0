// What Go's and apimachinery's parsers say of text that they cannot read. An API server hands it on as it is.
#pragma once

#include <string>
#include <string_view>

#include "nlohmann/json.hpp"

namespace wavetank::fakekube::http {

// encoding/json, of text that is no JSON: "invalid character 'b' looking for beginning of object key string".
std::string GoJsonError(std::string_view text);

// apimachinery's labels.Parse(): "unable to parse requirement: found '', expected: '('". Empty: it can be read.
std::string GoSelectorError(std::string_view selector);

// apiserver: pkg/endpoints/handlers/rest.go, transformDecodeError() and summarizeData(): of a body whose kind is not
// known, with its beginning.
std::string UnrecognizedObject(std::string_view kind, std::string_view wrong, std::string_view body);

// fmt's %#v of what JSON holds: "map[string]interface {}{\"replicas\":2}".
std::string GoSyntax(const nlohmann::json& value);

// fmt's %+v of what JSON holds: "map[replicas:2]".
std::string GoText(const nlohmann::json& value);

}  // namespace wavetank::fakekube::http
