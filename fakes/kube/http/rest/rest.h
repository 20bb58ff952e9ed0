// The REST API of one cluster: what kubectl, client-go and the Python client ask of an API server, on the store that
// the simulation uses. Whatever carries requests (server.h, a test, an event log being replayed) hands them in here.
//
// Runs on the store's thread. Deterministic: the same requests in the same states give the same states; so a log holds
// the requests for which Changes() is true, and a replay executes them again.
//
// What is served, and what is not: docs/kube-api.md.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/kube/credentials/service_account_token.h"
#include "fakes/kube/control/pod_hooks.h"
#include "fakes/kube/http/api/resources.h"
#include "fakes/kube/http/message/message.h"
#include "fakes/kube/http/message/representation.h"
#include "fakes/kube/http/message/watch_stream.h"
#include "fakes/kube/http/rest/call.h"
#include "fakes/kube/store/api_server.h"
#include "fakes/kube/store/event_store.h"

namespace wavetank::fakekube::http {

// What validating webhooks say of an object.
struct WebhookVerdict {
  std::optional<std::string> denied;  // why it may not be stored, in the API server's words
  bool failed = false;                // nobody has denied it: the webhook could not be asked
  std::vector<std::string> warnings;  // clients show them
};

struct RestOptions {
  // A client that presents it may do everything; one that presents a ServiceAccount's token may do what RBAC allows;
  // others do not come in. Empty: everybody may do everything.
  std::string bearer_token;
  // The same without such a token: a certificate or a ServiceAccount's token must say who comes.
  bool demand_credentials = false;
  const kube::TokenAuthority* tokens = nullptr;  // null: no ServiceAccount has tokens
  // What Pods pass that clients create. Null: nothing. Must outlive the API and the requests under way.
  PodAdmission* admission = nullptr;
  // Asked of every object as it would be stored (dry runs too, subresources not), when all else has let it in. Null:
  // there are no validating webhooks.
  std::function<WebhookVerdict(const nlohmann::json& object)> webhooks;
  // Limited lists whose later pages can still be asked for; older ones are 410 Expired.
  size_t kept_lists = 32;
  size_t max_depth = 64;  // of a request's JSON
};

class RestApi {
 public:
  // `server` must outlive it, and it every watch that it gave out.
  RestApi(ApiServer& server, RestOptions options);
  ~RestApi();
  RestApi(const RestApi&) = delete;
  RestApi& operator=(const RestApi&) = delete;

  // Reads what it is about and who asks. Whatever cannot be read or is not there is said by the call, and by Execute().
  Call Open(Request request) const;

  // Refuse(), else Execute().
  Response Handle(const Call& call);
  Response Handle(const Request& request);

  // What does not even reach the resource: the server's faults, clients that may not come in or may not do that.
  std::optional<Response> Refuse(const Call& call) const;
  // Without asking who it is. Never fails but by an answer.
  Response Execute(const Call& call);
  // Executing it may change the store: it must be an input of the world. (A dry run or a review does not.)
  bool Changes(const Call& call) const;

  // The request's body as JSON (null if it is empty), from JSON or YAML. InvalidArgument with the reason, which shows
  // nothing of the body.
  absl::StatusOr<nlohmann::json> ParseBody(const Request& request) const;
  // Why not, as kube-apiserver tells it.
  std::string UnreadableBody(const Request& request) const;

  // `body` of a request that may change the store, without what it demands of the object's version and uid as far as
  // that holds now. So the request does the same in a world whose versions are others. What does not hold stays, and
  // never will.
  nlohmann::json WithoutPreconditions(const Request& request, nlohmann::json body) const;

  // From now on; "" lets everybody in again.
  void DemandToken(std::string token) { options_.bearer_token = std::move(token); }

  // Nobody comes in whom no certificate or token names.
  void DemandCredentials() { options_.demand_credentials = true; }

  const ResourceTable& resources() const { return resources_; }
  ApiServer& server() { return server_; }

 private:
  // A list of which later pages can be asked for: the objects as they were when the first was.
  struct KeptList {
    uint64_t id = 0;
    int64_t resource_version = 0;
    std::string of;  // path and selectors, to which the token belongs
    std::vector<ObjectRef> items;
  };

  std::optional<Target> Resolve(std::string_view path) const;
  absl::StatusOr<Caller> Authenticate(const Request& request) const;

  Response Dispatch(const Call& call);
  Response Read(const Call& call);
  Response List(const Call& call);
  Response Watch(const Call& call);
  Response Create(const Call& call);
  // Stores a new object once admission has seen it. `write`: how, if it may be.
  Response Admit(nlohmann::json body, const Call& call, absl::AnyInvocable<Response(nlohmann::json admitted)> write);
  Response Update(const Call& call);
  Response Patch(const Call& call);
  // Server-side apply.
  Response Apply(nlohmann::json applied, const ObjectRef& previous, const Call& call);
  Response Delete(const Call& call);
  Response DeleteCollection(const Call& call);
  Response Review(const Call& call);
  Response IssueToken(const Call& call);
  Response Scale(const Call& call);
  Response Evict(const Call& call);
  // Why the pod may not be evicted now; takes one of what its budget allows unless `dry_run`.
  std::optional<Response> CheckBudget(const kube::Object& pod, bool dry_run);
  Response Bind(const Call& call);

  std::optional<Response> CheckNamespace(const Call& call) const;
  // Writes `body` in place of `previous`, or of nothing (null), if its type or schema knows it.
  Response Write(nlohmann::json body, const ObjectRef& previous, const Call& call);
  Response Store(nlohmann::json body, const ObjectRef& previous, const Call& call);
  // What LimitRanges and ResourceQuotas have against an object that is to be created; nullopt: nothing, and `body` has
  // the defaults that LimitRanges give.
  std::optional<Response> RefuseByLimits(const Resource& resource, nlohmann::json* body) const;
  // nullopt: RestOptions::webhooks have nothing against it; what they warn of is added.
  std::optional<Response> AskWebhooks(const nlohmann::json& object, const Call& call,
                                      std::vector<std::string>* warnings) const;
  Response One(int code, const kube::Object& object, const Call& call) const;
  Form FormFor(const Call& call) const;

  // Where the objects of that resource are.
  ApiServer& StoreOf(const Resource& resource) const {
    return resource.StoreKind() == "Event." ? server_.events()->objects() : server_;
  }
  ApiServer& StoreOf(const Call& call) const { return StoreOf(*call.target.resource); }

  ApiServer& server_;
  RestOptions options_;
  ResourceTable resources_;
  std::shared_ptr<LineCache> lines_;
  std::deque<std::unique_ptr<KeptList>> kept_;
  uint64_t next_list_ = 1;
  uint64_t generated_names_ = 0;
  Subscriptions subscriptions_;
};

}  // namespace wavetank::fakekube::http
