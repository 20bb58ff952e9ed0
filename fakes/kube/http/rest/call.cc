#include "fakes/kube/http/rest/call.h"

#include "absl/strings/str_split.h"

namespace wavetank::fakekube::http {

std::string Call::Verb() const {
  const bool one = !target.name.empty();
  if (reads()) return query.Flag("watch") ? "watch" : one ? "get" : "list";
  if (request->method == "POST") return "create";
  if (request->method == "PUT") return "update";
  if (request->method == "PATCH") return "patch";
  return one ? "delete" : "deletecollection";
}

// apiserver: pkg/endpoints/request/requestinfo.go.
std::string Call::ObjectName() const {
  if (!target.name.empty() || request->method == "POST") return target.name;
  constexpr std::string_view kName = "metadata.name=";
  const std::vector<std::string> terms = absl::StrSplit(query.Get("fieldSelector"), ',');
  for (const std::string& term : terms) {
    if (!term.starts_with(kName)) continue;
    const size_t more = term.substr(kName.size()).starts_with('=') ? 1 : 0;
    return term.substr(kName.size() + more);
  }
  return "";
}

WriteOptions HowToWrite(const Call& call) {
  WriteOptions options;
  options.validate = true;
  // kubectl names itself in the query.
  const std::string& manager = call.query.Get("fieldManager");
  options.field_manager = manager.empty() ? "unknown" : manager;
  options.subresource = call.target.subresource;
  return options;
}

}  // namespace wavetank::fakekube::http
