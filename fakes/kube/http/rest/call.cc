#include "fakes/kube/http/rest/call.h"

namespace wavetank::fakekube::http {

std::string Call::Verb() const {
  const bool one = !target.name.empty();
  if (reads()) return query.Flag("watch") ? "watch" : one ? "get" : "list";
  if (request->method == "POST") return "create";
  if (request->method == "PUT") return "update";
  if (request->method == "PATCH") return "patch";
  return one ? "delete" : "deletecollection";
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
