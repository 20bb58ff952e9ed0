// A request to the API, read once: which resource it is about, what its query says, and who asks.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "fakes/kube/http/api/resources.h"
#include "fakes/kube/http/message/message.h"
#include "fakes/kube/store/api_server.h"
#include "nlohmann/json.hpp"

namespace wavetank::fakekube::http {

// Who asks.
inline constexpr std::string_view kAdminUser = "kubernetes-admin";
inline constexpr std::string_view kMasters = "system:masters";  // members of this group may do everything
struct Caller {
  std::string user, uid;
  std::vector<std::string> groups;
  std::map<std::string, std::vector<std::string>> extra;
  bool admin = false;
  bool checked = false;  // RBAC decides, unless admin
};

// Why somebody may not speak for another: 403, or 500 where it cannot be told for whom.
struct Refusal {
  int code = 403;
  std::string message;
  nlohmann::json details;
};

// What a path means.
struct Target {
  std::shared_ptr<const Resource> resource;  // null: no resource of this API
  std::string ns, name, subresource;
};

// Cheap to copy: an answer that comes later keeps one.
struct Call {
  std::shared_ptr<const Request> request;
  Target target;
  Query query;
  absl::Status query_status;  // InvalidArgument: the query cannot be read, and `query` is empty
  // Unauthenticated: nobody that is known. PermissionDenied: somebody who may not speak for others, see `refusal`.
  absl::StatusOr<Caller> caller;
  std::shared_ptr<const Refusal> refusal;

  bool of_resource() const { return target.resource != nullptr; }
  bool reads() const { return request->method == "GET" || request->method == "HEAD"; }
  // As RBAC names it.
  std::string Verb() const;
  // The one object that it is about: its path's, or that which a field selector names.
  std::string ObjectName() const;
  // The same for another object or another request.
  Call For(Request other) const {
    Call call = *this;
    call.request = std::make_shared<const Request>(std::move(other));
    return call;
  }
};

// What the call says of a write: by whom, of which subresource. It is validated.
WriteOptions HowToWrite(const Call& call);

}  // namespace wavetank::fakekube::http
