#include "fakes/kube/http/rest/rest.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/base/text/json_brackets.h"
#include "core/kube/time_format.h"
#include "core/kube/yaml.h"
#include "fakes/kube/http/api/api_types.h"
#include "fakes/kube/http/api/go_words.h"
#include "fakes/kube/http/api/protobuf_body.h"
#include "fakes/kube/http/message/status.h"
#include "fakes/kube/http/rest/discovery.h"
#include "fakes/kube/http/rest/dressing.h"
#include "fakes/kube/http/rest/observability.h"
#include "fakes/kube/http/rest/openapi.h"
#include "fakes/kube/http/rest/preconditions.h"
#include "fakes/kube/http/rest/reviews.h"
#include "fakes/kube/store/rbac.h"

namespace wavetank::fakekube::http {
namespace {

using nlohmann::json;

constexpr std::string_view kCrd = "CustomResourceDefinition.apiextensions.k8s.io";

// What a client wants of a pod's processes, for the subresources that need them; null for the others. Pods here run
// nothing.
const char* NeedsProcess(std::string_view subresource) {
  static constexpr std::pair<std::string_view, const char*> kWants[] = {
      {"log", "it writes no log"},
      {"exec", "nothing can be executed in it"},
      {"attach", "there is nothing to attach to"},
      {"portforward", "no port of it can be forwarded"},
      {"proxy", "nothing can be asked of it"}};
  for (const auto& [name, wants] : kWants) {
    if (name == subresource) return wants;
  }
  return nullptr;
}

}  // namespace

RestApi::RestApi(ApiServer& server, RestOptions options)
    : server_(server), options_(std::move(options)), lines_(std::make_shared<LineCache>()) {
  for (const ObjectRef& definition : server_.List(kCrd)) resources_.Define(*definition);
  subscriptions_.Add(server_.Observe(kCrd, [this](const Change& change) {
    if (change.type == kube::WatchEventType::kDeleted) {
      resources_.Remove(change.object->meta.name);
    } else {
      resources_.Define(*change.object);
    }
  }));
}

RestApi::~RestApi() = default;

absl::StatusOr<json> RestApi::ParseBody(const Request& request) const {
  if (request.parsed != nullptr) return *request.parsed;
  if (request.body.empty()) return json();
  if (IsProtobufBody(request.body)) {
    return DecodeProtobufBody(request.body, [&](std::string_view api_version, std::string_view kind) {
      const Resource* resource = resources_.FindKind(api_version, kind);
      const ApiType* type = resource == nullptr ? nullptr : ApiTypeOf(*resource);
      // What is sent to a subresource, or only asks.
      const bool asks = resource != nullptr && resource->review_only;
      static constexpr std::string_view kSent[] = {"DeleteOptions", "Eviction", "Scale", "TokenRequest"};
      if (asks || (type == nullptr && std::find(std::begin(kSent), std::end(kSent), kind) != std::end(kSent)))
        type = FindApiType(kind);
      return type;
    });
  }
  if (DeeperThan(request.body, options_.max_depth)) {
    return absl::InvalidArgumentError(
        fmt::format("the object provided is nested deeper than {} levels", options_.max_depth));
  }
  json parsed = ParseJson(request.body);
  if (!parsed.is_discarded()) return parsed;
  if (request.content_type.find("yaml") != std::string::npos) {
    absl::StatusOr<json> yaml = kube::ParseYaml(request.body, "body");
    if (yaml.ok()) return yaml;
    return absl::InvalidArgumentError(fmt::format("error decoding YAML: {}", Message(yaml.status())));
  }
  return absl::InvalidArgumentError(UnreadableBody(request));
}

// apiserver: pkg/endpoints/handlers, patch.go and transformDecodeError().
std::string RestApi::UnreadableBody(const Request& request) const {
  const std::string wrong = GoJsonError(request.body);
  if (request.method == "PATCH") {
    const bool strategic = request.content_type.starts_with("application/strategic-merge-patch+json");
    return strategic ? wrong : "error decoding patch: " + wrong;
  }
  const std::optional<Target> target = Resolve(request.path);
  const std::string kind = !target ? "Status" : request.method == "DELETE" ? "DeleteOptions" : target->resource->kind;
  return UnrecognizedObject(kind, "couldn't get version/kind; json parse error: " + wrong, request.body);
}

std::optional<Target> RestApi::Resolve(std::string_view path) const {
  std::vector<std::string> parts;
  while (!path.empty() && path.front() == '/') {
    path.remove_prefix(1);
    const size_t end = path.find('/');
    absl::StatusOr<std::string> part = PercentDecode(path.substr(0, end));
    path = end == std::string_view::npos ? std::string_view() : path.substr(end);
    if (!part.ok()) return std::nullopt;
    if (part->empty() && path.empty()) break;  // a slash at the end
    if (part->empty() || *part == "." || *part == ".." || part->find('/') != std::string::npos) return std::nullopt;
    parts.push_back(*std::move(part));
    if (parts.size() > 9) return std::nullopt;
  }
  std::string group, version;
  size_t at = 0;
  if (parts.size() >= 3 && parts[0] == "api") {
    version = parts[1];
    at = 2;
  } else if (parts.size() >= 4 && parts[0] == "apis") {
    group = parts[1];
    version = parts[2];
    at = 3;
  } else {
    return std::nullopt;
  }
  Target target;
  std::vector<std::string> rest(parts.begin() + static_cast<std::ptrdiff_t>(at), parts.end());
  // /namespaces/NS/RESOURCE..., where the namespace itself may be what is meant.
  if (rest.size() >= 3 && rest[0] == "namespaces") {
    const Resource* own = resources_.Find("", "v1", "namespaces");
    const bool of_namespace = group.empty() && rest.size() == 3 && own->HasSubresource(rest[2]);
    if (!of_namespace) {
      target.ns = rest[1];
      rest.erase(rest.begin(), rest.begin() + 2);
    }
  }
  // What follows is a path of whoever is asked through the proxy.
  if (rest.size() > 3 && rest[2] == "proxy") rest.resize(3);
  if (rest.size() > 3) return std::nullopt;
  const Resource* resource = resources_.Find(group, version, rest[0]);
  if (resource == nullptr) return std::nullopt;
  if (!target.ns.empty() && !resource->namespaced) return std::nullopt;
  if (rest.size() > 1) target.name = rest[1];
  if (rest.size() > 2) target.subresource = rest[2];
  if (!target.name.empty() && resource->namespaced && target.ns.empty()) return std::nullopt;
  if (!target.subresource.empty() && !resource->HasSubresource(target.subresource)) return std::nullopt;
  target.resource = std::make_shared<const Resource>(*resource);
  return target;
}

absl::StatusOr<Caller> RestApi::Authenticate(const Request& request) const {
  Caller caller;
  caller.user = kAdminUser;
  caller.groups = {"system:masters", "system:authenticated"};
  caller.admin = true;
  constexpr std::string_view kBearer = "Bearer ";
  const std::string_view header = request.authorization;
  const std::string_view token = header.starts_with(kBearer) ? header.substr(kBearer.size()) : std::string_view();
  const bool demanded = options_.demand_credentials || !options_.bearer_token.empty();
  if (!request.certificate_user.empty()) {
    caller.user = request.certificate_user;
    caller.groups = request.certificate_groups;
    caller.admin = std::find(caller.groups.begin(), caller.groups.end(), kMasters) != caller.groups.end();
    caller.groups.push_back("system:authenticated");
    caller.checked = demanded;
  } else if (!demanded || token.empty() || token != options_.bearer_token) {
    absl::StatusOr<kube::TokenClaims> claims = absl::UnauthenticatedError("no token");
    if (!token.empty() && options_.tokens != nullptr) claims = options_.tokens->Verify(token, {}, server_.host().Now());
    if (claims.ok() && CheckBinding(server_, *claims).ok()) {
      caller = CallerOf(server_, *claims);
      caller.checked = demanded;
      // A cluster that demands no token lets everybody do everything; reviews then answer for the account.
    } else if (demanded) {
      return absl::UnauthenticatedError("Unauthorized");
    }
  }
  return caller;
}

Call RestApi::Open(Request request) const {
  Call call;
  call.caller = Authenticate(request);
  if (call.caller.ok()) {
    if (auto other = Impersonate(server_, *call.caller, request)) {
      if (Caller* caller = std::get_if<Caller>(&*other)) {
        call.caller = std::move(*caller);
      } else {
        call.refusal = std::make_shared<const Refusal>(std::get<Refusal>(*std::move(other)));
        call.caller = absl::PermissionDeniedError(call.refusal->message);
      }
    }
  }
  call.target = Resolve(request.path).value_or(Target());
  absl::StatusOr<Query> query = Query::Parse(request.query);
  call.query_status = query.status();
  if (query.ok()) call.query = *std::move(query);
  call.request = std::make_shared<const Request>(std::move(request));
  return call;
}

namespace {

ApiCall FaultyCall(const Call& call) {
  if (call.reads()) return call.query.Flag("watch") ? ApiCall::kWatch : ApiCall::kRead;
  return call.of_resource() && call.target.resource->kind == "TokenReview" ? ApiCall::kTokenReview : ApiCall::kWrite;
}

// What the server's faults answer in its place.
std::optional<Response> RefuseByFault(const CallFate& fate) {
  if (!fate.answered) {
    Response response;
    response.hang_up = true;
    return response;
  }
  if (fate.refusal.ok()) return std::nullopt;
  if (absl::IsUnauthenticated(fate.refusal)) return Unauthorized();
  const int64_t seconds = std::max<int64_t>(1, fate.retry_after / std::chrono::seconds(1));
  Response response =
      Failure(429, "TooManyRequests", std::string(Message(fate.refusal)), {{"retryAfterSeconds", seconds}});
  response.headers.emplace_back("Retry-After", std::to_string(seconds));
  return response;
}

}  // namespace

std::optional<Response> RestApi::Refuse(const Call& call) const {
  if (std::optional<Response> refused = RefuseByFault(server_.FateOf(FaultyCall(call)))) return refused;
  const absl::StatusOr<Caller>& caller = call.caller;
  if (absl::IsUnauthenticated(caller.status())) return Unauthorized();
  if (call.refusal != nullptr) {
    if (call.refusal->code == 403) return Failure(403, "Forbidden", call.refusal->message, call.refusal->details);
    return PlainResponse(call.refusal->code, call.refusal->message + "\n");
  }
  if (caller->admin || !caller->checked) return std::nullopt;
  if (!call.of_resource() || !call.query_status.ok()) return std::nullopt;
  const Target* const target = &call.target;
  const Resource& resource = *target->resource;
  // Every client that is known may ask what it may do.
  if (resource.review_only && resource.kind.starts_with("SelfSubject")) return std::nullopt;
  const std::string verb = call.Verb();
  const json attributes = {{"verb", verb},
                           {"group", resource.group},
                           {"resource", resource.plural},
                           {"subresource", target->subresource},
                           {"namespace", target->ns},
                           {"name", call.ObjectName()}};
  if (MayDo(server_, *caller, {{"resourceAttributes", attributes}})) return std::nullopt;
  const std::string what =
      target->subresource.empty() ? resource.plural : fmt::format("{}/{}", resource.plural, target->subresource);
  json details = {{"kind", resource.plural}};
  if (!resource.group.empty()) details["group"] = resource.group;
  if (!target->name.empty()) details["name"] = target->name;
  return Failure(403, "Forbidden", ForbiddenWords({caller->user, verb, resource.group, what, target->ns, target->name}),
                 std::move(details));
}

namespace {

Call Signed(const RestApi& api, const Call& call) {
  absl::StatusOr<json> body = api.ParseBody(*call.request);
  if (!body.ok()) return call;
  Request request = *call.request;
  request.parsed = std::make_shared<const json>(WithCaller(call, *std::move(body)));
  return call.For(std::move(request));
}

}  // namespace

Response RestApi::Handle(const Request& request) {
  const Call call = Open(request);
  return Handle(call);
}

Response RestApi::Handle(const Call& call) {
  std::optional<Response> refusal = Refuse(call);
  Response response = refusal ? *std::move(refusal) : Execute(SaysWhoAsks(call) ? Signed(*this, call) : call);
  Dress(call, server_.release(), &response);
  response.delay = server_.FateOf(FaultyCall(call)).delay;
  return response;
}

bool RestApi::Changes(const Call& call) const {
  const std::string& method = call.request->method;
  if (method != "POST" && method != "PUT" && method != "PATCH" && method != "DELETE") return false;
  return call.of_resource() && call.query_status.ok() && !call.target.resource->review_only &&
         call.target.subresource != "token" && NeedsProcess(call.target.subresource) == nullptr &&
         !call.query.Has("dryRun");
}

json RestApi::WithoutPreconditions(const Request& request, json body) const {
  const std::optional<Target> target = Resolve(request.path);
  if (!target || target->name.empty()) return body;
  const ObjectRef object = StoreOf(*target->resource).Get(target->resource->StoreKind(), {target->ns, target->name});
  return http::WithoutPreconditions(request.method, request.content_type, target->subresource == "scale", object.get(),
                                    std::move(body));
}

Response RestApi::Execute(const Call& call) {
  // Whatever the body's fields are, a wrong type of one of them ends here.
  try {
    return Dispatch(call);
  } catch (const json::exception&) {
    return BadRequest("the object provided is unrecognized: a field of it is of the wrong type");
  }
}

namespace {

// Of what is sent whole; without a word it is JSON.
bool IsObjectFormat(std::string_view content_type) {
  const std::string_view type = content_type.substr(0, content_type.find(';'));
  return type.empty() || type == "application/json" || type.find("yaml") != std::string_view::npos ||
         type == "application/vnd.kubernetes.protobuf";
}

}  // namespace

Response RestApi::Dispatch(const Call& call) {
  const Request& request = *call.request;
  std::string_view path = request.path;
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const bool reads = call.reads();
  if (std::optional<Response> response = Discover(resources_, server_.release(), path)) {
    if (!reads) return MethodNotAllowed();
    return *std::move(response);
  }
  if (std::optional<Response> response = Observability(server_, options_.tokens, path)) {
    if (!reads) return MethodNotAllowed();
    return *std::move(response);
  }
  if (path == "/openapi/v2" && reads) return OpenApiV2(resources_, server_.release(), request.accept);
  if (std::optional<Response> response = OpenApiV3(resources_, server_.release(), path, request.accept);
      response && reads)
    return *std::move(response);
  if (!call.query_status.ok()) return BadRequest(std::string(call.query_status.message()));
  const Query* const query = &call.query;
  const Target* const target = &call.target;
  if (!call.of_resource()) return NoSuchPath();
  if (const std::string& dry = query->Get("dryRun"); !dry.empty() && dry != "All")
    return BadRequest(fmt::format("dryRun: Unsupported value: \"{}\": supported values: \"All\"", dry));
  const std::string& sub = target->subresource;
  const bool one = !target->name.empty();
  if ((request.method == "POST" || request.method == "PUT") && !IsObjectFormat(request.content_type)) {
    return Failure(415, "UnsupportedMediaType",
                   "the body of the request was in an unknown format - accepted media types include: application/json, "
                   "application/yaml, application/vnd.kubernetes.protobuf");
  }
  if (target->resource->review_only) {
    return request.method == "POST" && !one ? Review(call) : MethodNotAllowed();
  }
  if (sub == "scale") {
    return reads || request.method == "PUT" || request.method == "PATCH" ? Scale(call) : MethodNotAllowed();
  }
  if (sub == "token") return request.method == "POST" ? IssueToken(call) : MethodNotAllowed();
  if (sub == "eviction") return request.method == "POST" ? Evict(call) : MethodNotAllowed();
  if (const char* wants = NeedsProcess(sub); wants != nullptr) {
    if (server_.Get(target->resource->StoreKind(), {target->ns, target->name}) == nullptr)
      return NotFound(*target->resource, target->name);
    return BadRequest(fmt::format("{} \"{}\" is simulated: no process runs in it, and {}", target->resource->singular,
                                  target->name, wants));
  }
  if (sub == "binding") return request.method == "POST" ? Bind(call) : MethodNotAllowed();
  if (sub == "finalize" && request.method != "PUT") return MethodNotAllowed();
  if (reads) {
    if (query->Flag("watch")) return Watch(call);
    return one ? Read(call) : List(call);
  }
  if (request.method == "POST") return one ? MethodNotAllowed() : Create(call);
  if (target->resource->event_view && request.method != "DELETE") return MethodNotAllowed();
  if (request.method == "PUT") return one ? Update(call) : MethodNotAllowed();
  if (request.method == "PATCH") return one ? Patch(call) : MethodNotAllowed();
  if (request.method == "DELETE" && sub.empty()) return one ? Delete(call) : DeleteCollection(call);
  return MethodNotAllowed();
}

}  // namespace wavetank::fakekube::http
