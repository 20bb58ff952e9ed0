// Parameters of a path's query, decoded: by name, each with its values in their order.
// Envoy: source/common/http/utility.cc, QueryParamsMulti
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace wavetank::envoysim {

using QueryParameters = std::map<std::string, std::vector<std::string>>;

QueryParameters QueryParametersOf(std::string_view path);
// The path with these in place of its own. Nothing is encoded again.
std::string WithQueryParameters(std::string_view path, const QueryParameters& parameters);

// As Envoy 1.40 encodes what it adds to a query: all but letters, digits, '-', '_', '.' and '*'.
std::string EncodedForQuery(std::string_view value);

}  // namespace wavetank::envoysim
