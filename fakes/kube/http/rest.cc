#include "fakes/kube/http/rest.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/kube/time_format.h"
#include "core/kube/yaml.h"
#include "fakes/kube/http/api_types.h"
#include "fakes/kube/http/discovery.h"
#include "fakes/kube/http/go_words.h"
#include "fakes/kube/http/nesting.h"
#include "fakes/kube/http/openapi.h"
#include "fakes/kube/http/preconditions.h"
#include "fakes/kube/http/protobuf_body.h"
#include "fakes/kube/http/reviews.h"
#include "fakes/kube/http/status.h"

namespace wavetank::fakekube::http {
namespace {

using nlohmann::json;

constexpr std::string_view kCrd = "CustomResourceDefinition.apiextensions.k8s.io";
constexpr std::string_view kAdmin = "kubernetes-admin";

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

std::optional<int64_t> NumberIn(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

// Kubernetes' fields that can be selected by, beside name and namespace (pkg/apis/*/v1/conversion.go).
bool SelectableField(const Resource& resource, const std::string& path) {
  static const auto* const kFields = new std::map<std::string, std::set<std::string>, std::less<>>{
      {"pods",
       {"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
        "status.phase", "status.podIP", "status.nominatedNodeName"}},
      {"events",
       {"involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
        "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason",
        "reportingComponent", "source", "type"}},
      {"secrets", {"type"}},
      {"services", {"spec.clusterIP", "spec.type"}},
      {"namespaces", {"status.phase"}},
      {"nodes", {"spec.unschedulable"}},
      {"replicasets.apps", {"status.replicas"}},
      {"replicationcontrollers", {"status.replicas"}},
      {"jobs.batch", {"status.successful"}},
      {"certificatesigningrequests.certificates.k8s.io", {"spec.signerName"}},
  };
  if (path == "metadata.name" || (path == "metadata.namespace" && resource.namespaced)) return true;
  const auto it = kFields->find(resource.Qualified());
  return it != kFields->end() && it->second.contains(path);
}

}  // namespace

// A list of which later pages can be asked for: the objects as they were when the first was.
struct RestApi::KeptList {
  uint64_t id = 0;
  int64_t resource_version = 0;
  std::string of;  // path and selectors, to which the token belongs
  std::vector<ObjectRef> items;
};

RestApi::RestApi(ApiServer& server, RestOptions options)
    : server_(server), options_(std::move(options)), lines_(std::make_shared<LineCache>()) {
  for (const ObjectRef& definition : server_.List(kCrd)) resources_.Define(*definition);
  // The store has no way to stop observing; it and this live as long as their cluster.
  server_.Observe(kCrd, [this](const Change& change) {
    if (change.type == kube::WatchEventType::kDeleted) {
      resources_.Remove(change.object->meta.name);
    } else {
      resources_.Define(*change.object);
    }
  });
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
    if (absl::Status status = kube::CheckYamlNesting(request.body, "body"); !status.ok()) return status;
    absl::StatusOr<json> yaml = kube::ParseYaml(request.body, "body");
    if (yaml.ok()) return yaml;
    return absl::InvalidArgumentError(fmt::format("error decoding YAML: {}", Message(yaml.status())));
  }
  return absl::InvalidArgumentError(UnreadableBody(request));
}

// apiserver: pkg/endpoints/handlers, patch.go and transformDecodeError().
std::string RestApi::UnreadableBody(const Request& request) const {
  constexpr size_t kShown = 30;
  const std::string wrong = GoJsonError(request.body);
  if (request.method == "PATCH") {
    const bool strategic = request.content_type.starts_with("application/strategic-merge-patch+json");
    return strategic ? wrong : "error decoding patch: " + wrong;
  }
  const std::optional<Target> target = Resolve(request.path);
  const std::string kind = !target ? "Status" : request.method == "DELETE" ? "DeleteOptions" : target->resource->kind;
  std::string shown = request.body.substr(0, kShown);
  if (shown[0] != '{') shown = absl::BytesToHexString(shown);
  if (request.body.size() > kShown) shown += " ...";
  return fmt::format(
      "the object provided is unrecognized (must be of type {}): couldn't get version/kind; json parse error: {} ({})",
      kind, wrong, shown);
}

std::optional<RestApi::Target> RestApi::Resolve(std::string_view path) const {
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
  caller.user = kAdmin;
  caller.groups = {"system:masters", "system:authenticated"};
  caller.admin = true;
  constexpr std::string_view kBearer = "Bearer ";
  const std::string_view header = request.authorization;
  const std::string_view token = header.starts_with(kBearer) ? header.substr(kBearer.size()) : std::string_view();
  const bool demanded = options_.demand_credentials || !options_.bearer_token.empty();
  if (!request.certificate_user.empty()) {
    caller.user = request.certificate_user;
    caller.groups = request.certificate_groups;
    caller.admin = std::find(caller.groups.begin(), caller.groups.end(), "system:masters") != caller.groups.end();
    caller.groups.push_back("system:authenticated");
    caller.checked = demanded;
  } else if (!demanded || token.empty() || token != options_.bearer_token) {
    absl::StatusOr<kube::TokenClaims> claims = absl::UnauthenticatedError("no token");
    if (!token.empty() && options_.tokens != nullptr) claims = options_.tokens->Verify(token, {}, server_.host().Now());
    if (claims.ok() && CheckBinding(server_, *claims).ok()) {
      caller = CallerOf(*claims);
      caller.checked = demanded;
      // A cluster that demands no token lets everybody do everything; reviews then answer for the account.
    } else if (demanded) {
      return absl::UnauthenticatedError("Unauthorized");
    }
  }
  if (!request.impersonate_user.empty()) {
    if (!caller.admin) return absl::PermissionDeniedError(caller.user);
    caller = {request.impersonate_user, {"system:authenticated"}, false, true};
  }
  return caller;
}

std::string RestApi::VerbOf(const Request& request, const Target& target, const Query& query) const {
  const bool one = !target.name.empty();
  if (request.method == "GET" || request.method == "HEAD") return query.Flag("watch") ? "watch" : one ? "get" : "list";
  if (request.method == "POST") return "create";
  if (request.method == "PUT") return "update";
  if (request.method == "PATCH") return "patch";
  return one ? "delete" : "deletecollection";
}

std::optional<Response> RestApi::Refuse(const Request& request) const {
  const Faults& faults = server_.faults();
  if (faults.unreachable) {
    Response response;
    response.hang_up = true;
    return response;
  }
  if (faults.unauthorized) return Unauthorized();
  if (faults.retry_after > Duration::zero()) {
    const int64_t seconds = std::max<int64_t>(1, faults.retry_after / std::chrono::seconds(1));
    Response response =
        Failure(429, "TooManyRequests", "Too many requests, please try again later.", {{"retryAfterSeconds", seconds}});
    response.headers.emplace_back("Retry-After", std::to_string(seconds));
    return response;
  }
  const absl::StatusOr<Caller> caller = Authenticate(request);
  if (absl::IsUnauthenticated(caller.status())) return Unauthorized();
  if (!caller.ok()) {
    return Failure(403, "Forbidden",
                   fmt::format("users \"{}\" is forbidden: User \"{}\" cannot impersonate resource \"users\" in API "
                               "group \"\" at the cluster scope",
                               request.impersonate_user, Message(caller.status())));
  }
  if (caller->admin || !caller->checked) return std::nullopt;
  const std::optional<Target> target = Resolve(request.path);
  const absl::StatusOr<Query> query = Query::Parse(request.query);
  if (!target || !query.ok()) return std::nullopt;
  const Resource& resource = *target->resource;
  // Everybody who is known may ask what he may do.
  if (resource.review_only && resource.kind.starts_with("SelfSubject")) return std::nullopt;
  const std::string verb = VerbOf(request, *target, *query);
  const json attributes = {{"verb", verb},
                           {"group", resource.group},
                           {"resource", resource.plural},
                           {"subresource", target->subresource},
                           {"namespace", target->ns}};
  if (MayDo(server_, *caller, {{"resourceAttributes", attributes}})) return std::nullopt;
  const std::string what =
      target->subresource.empty() ? resource.plural : fmt::format("{}/{}", resource.plural, target->subresource);
  json details = {{"kind", resource.plural}};
  if (!resource.group.empty()) details["group"] = resource.group;
  if (!target->name.empty()) details["name"] = target->name;
  return Failure(
      403, "Forbidden",
      fmt::format("{}{} is forbidden: User \"{}\" cannot {} resource \"{}\" in API group \"{}\" {}",
                  resource.Qualified(), target->name.empty() ? "" : fmt::format(" \"{}\"", target->name), caller->user,
                  verb, what, resource.group,
                  target->ns.empty() ? "at the cluster scope" : fmt::format("in the namespace \"{}\"", target->ns)),
      std::move(details));
}

Response RestApi::Handle(const Request& request) {
  std::optional<Response> refusal = Refuse(request);
  Response response = refusal ? *std::move(refusal) : Execute(request);
  response.delay = server_.faults().extra_latency;
  return response;
}

bool RestApi::Changes(const Request& request) const {
  if (request.method != "POST" && request.method != "PUT" && request.method != "PATCH" && request.method != "DELETE")
    return false;
  const std::optional<Target> target = Resolve(request.path);
  const absl::StatusOr<Query> query = Query::Parse(request.query);
  return target && query.ok() && !target->resource->review_only && target->subresource != "token" &&
         NeedsProcess(target->subresource) == nullptr && !query->Has("dryRun");
}

json RestApi::WithoutPreconditions(const Request& request, json body) const {
  const std::optional<Target> target = Resolve(request.path);
  if (!target || target->name.empty()) return body;
  const ObjectRef object = server_.Get(target->resource->StoreKind(), {target->ns, target->name});
  return http::WithoutPreconditions(request.method, request.content_type, target->subresource == "scale", object.get(),
                                    std::move(body));
}

Response RestApi::Execute(const Request& request) {
  // Whatever the body's fields are, a wrong type of one of them ends here.
  try {
    return Dispatch(request);
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

Response RestApi::Dispatch(const Request& request) {
  std::string_view path = request.path;
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const bool reads = request.method == "GET" || request.method == "HEAD";
  if (std::optional<Response> response = Discover(resources_, path)) {
    if (!reads) return MethodNotAllowed();
    return *std::move(response);
  }
  if (path == "/openapi/v2" && reads) return OpenApiV2(resources_, request.accept);
  if (std::optional<Response> response = OpenApiV3(resources_, path, request.accept); response && reads)
    return *std::move(response);
  const absl::StatusOr<Query> query = Query::Parse(request.query);
  if (!query.ok()) return BadRequest(std::string(query.status().message()));
  const std::optional<Target> target = Resolve(path);
  if (!target) return NoSuchPath();
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
    return request.method == "POST" && !one ? Review(request, *target) : MethodNotAllowed();
  }
  if (sub == "scale") {
    return reads || request.method == "PUT" || request.method == "PATCH" ? Scale(request, *target, *query)
                                                                         : MethodNotAllowed();
  }
  if (sub == "token") return request.method == "POST" ? IssueToken(request, *target) : MethodNotAllowed();
  if (sub == "eviction") return request.method == "POST" ? Evict(request, *target, *query) : MethodNotAllowed();
  if (const char* wants = NeedsProcess(sub); wants != nullptr) {
    if (server_.Get(target->resource->StoreKind(), {target->ns, target->name}) == nullptr)
      return NotFound(*target->resource, target->name);
    return BadRequest(fmt::format("{} \"{}\" is simulated: no process runs in it, and {}", target->resource->singular,
                                  target->name, wants));
  }
  if (sub == "binding" || sub == "finalize" || sub == "approval") return MethodNotAllowed();
  if (reads) {
    if (query->Flag("watch")) return Watch(request, *target, *query);
    return one ? Read(request, *target, *query) : List(request, *target, *query);
  }
  if (request.method == "POST") return one ? MethodNotAllowed() : Create(request, *target, *query);
  if (target->resource->event_view && request.method != "DELETE") return MethodNotAllowed();
  if (request.method == "PUT") return one ? Update(request, *target, *query) : MethodNotAllowed();
  if (request.method == "PATCH") return one ? Patch(request, *target, *query) : MethodNotAllowed();
  if (request.method == "DELETE" && sub.empty())
    return one ? Delete(request, *target, *query) : DeleteCollection(request, *target, *query);
  return MethodNotAllowed();
}

Form RestApi::FormFor(const Request& request, const Target& target, const Query& query) const {
  Form form;
  form.kind = FormOf(request.accept);
  form.resource = target.resource;
  form.now_unix_seconds = server_.UnixNow();
  form.view = request.view;
  const std::string& include = query.Get("includeObject");
  if (include == "Object") form.rows = Form::RowObject::kWhole;
  if (include == "None") form.rows = Form::RowObject::kNone;
  return form;
}

Response RestApi::One(int code, const kube::Object& object, const Request& request, const Target& target,
                      const Query& query) const {
  Response response;
  response.code = code;
  response.body = RenderObject(object, FormFor(request, target, query)) + "\n";
  return response;
}

Response RestApi::Read(const Request& request, const Target& target, const Query& query) {
  const ObjectRef object = server_.Get(target.resource->StoreKind(), {target.ns, target.name});
  if (object == nullptr) return NotFound(*target.resource, target.name);
  return One(200, *(request.view == nullptr ? object : request.view->See(object)), request, target, query);
}

namespace {

struct Selection {
  kube::LabelSelector labels;
  FieldSelector fields;
};

std::string NoVersion(const std::string& text) {
  return fmt::format("resourceVersion: Invalid value: {0}: strconv.ParseUint: parsing {0}: invalid syntax",
                     JsonText(json(text)));
}

// The request's selectors, or the refusal.
std::optional<Response> ReadSelection(const Resource& resource, const std::string& name, const Query& query,
                                      Selection* out) {
  // kubectl says itself what it was looking for.
  if (const std::string wrong = GoSelectorError(query.Get("labelSelector")); !wrong.empty()) return BadRequest(wrong);
  absl::StatusOr<kube::LabelSelector> labels = kube::LabelSelector::Parse(query.Get("labelSelector"));
  if (!labels.ok()) return BadRequest(fmt::format("unable to parse requirement: {}", Message(labels.status())));
  std::string text = query.Get("fieldSelector");
  // A watch of one object by its path.
  if (!name.empty()) text += fmt::format("{}metadata.name={}", text.empty() ? "" : ",", name);
  absl::StatusOr<FieldSelector> fields = FieldSelector::Parse(text);
  std::string wrong = fields.ok() ? std::string() : std::string(Message(fields.status()));
  if (fields.ok()) {
    for (const std::string& path : fields->Paths()) {
      if (wrong.empty() && !SelectableField(resource, path)) wrong = "field label not supported: " + path;
    }
  }
  if (!wrong.empty()) return BadRequest(wrong);
  out->labels = *std::move(labels);
  out->fields = *std::move(fields);
  return std::nullopt;
}

Response TooLargeVersion(int64_t asked, int64_t now) {
  const std::string message = fmt::format("Too large resource version: {}, current: {}", asked, now);
  Response response = Failure(
      504, "Timeout", "Timeout: " + message,
      {{"causes", json::array({{{"reason", "ResourceVersionTooLarge"}, {"message", "Too large resource version"}}})},
       {"retryAfterSeconds", 1}});
  response.headers.emplace_back("Retry-After", "1");
  return response;
}

constexpr const char* kExpiredContinue =
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter.";

}  // namespace

Response RestApi::List(const Request& request, const Target& target, const Query& query) {
  Selection selection;
  if (std::optional<Response> wrong = ReadSelection(*target.resource, "", query, &selection)) return *std::move(wrong);
  int64_t limit = 0;
  if (const std::string& text = query.Get("limit"); !text.empty()) {
    const std::optional<int64_t> number = NumberIn(text);
    if (!number) return BadRequest(fmt::format("strconv.ParseInt: parsing {}: invalid syntax", JsonText(json(text))));
    limit = *number;
  }
  const std::string of =
      fmt::format("{}\n{}\n{}", request.path, query.Get("labelSelector"), query.Get("fieldSelector"));
  ListPage page;
  page.resource_version = server_.VisibleVersion();
  if (const std::string& text = query.Get("continue"); !text.empty()) {
    std::string token;
    absl::WebSafeBase64Unescape(text, &token);
    const size_t dot = token.find('.');
    const std::optional<int64_t> id = dot == std::string::npos ? std::nullopt : NumberIn(token.substr(0, dot));
    const std::optional<int64_t> from = id ? NumberIn(token.substr(dot + 1)) : std::nullopt;
    if (!from) return BadRequest("continue key is not valid");
    const auto kept = std::find_if(kept_.begin(), kept_.end(),
                                   [&](const auto& k) { return k->id == static_cast<uint64_t>(*id) && k->of == of; });
    if (kept == kept_.end()) return Failure(410, "Expired", kExpiredContinue);
    const KeptList& list = **kept;
    const size_t start = std::min(static_cast<size_t>(*from), list.items.size());
    const size_t count =
        limit == 0 ? list.items.size() - start : std::min(static_cast<size_t>(limit), list.items.size() - start);
    page.resource_version = list.resource_version;
    page.items.assign(list.items.begin() + static_cast<std::ptrdiff_t>(start),
                      list.items.begin() + static_cast<std::ptrdiff_t>(start + count));
    if (start + count < list.items.size()) {
      page.next = absl::WebSafeBase64Escape(fmt::format("{}.{}", list.id, start + count));
      page.remaining = static_cast<int64_t>(list.items.size() - start - count);
    }
    return RenderList(std::move(page), FormFor(request, target, query));
  }
  if (const std::string& text = query.Get("resourceVersion"); !text.empty() && text != "0") {
    const std::optional<int64_t> version = NumberIn(text);
    if (!version) return BadRequest(NoVersion(text));
    if (*version > page.resource_version) return TooLargeVersion(*version, page.resource_version);
    // Only the present is kept whole.
    if (query.Get("resourceVersionMatch") == "Exact" && *version != page.resource_version)
      return Failure(410, "Expired",
                     fmt::format("The resourceVersion for the provided list is too old: {} ({})", *version,
                                 page.resource_version));
  }
  const std::string kind = target.resource->StoreKind();
  std::vector<ObjectRef> items;
  const std::optional<std::string> name = selection.fields.Exactly("metadata.name");
  const bool stale = server_.VisibleVersion() != server_.resource_version();
  if (name && !stale && (!target.ns.empty() || !target.resource->namespaced)) {
    if (ObjectRef object = server_.Get(kind, {target.ns, *name}); object != nullptr) items.push_back(std::move(object));
  } else {
    items = server_.ListForClients(kind, target.ns).items;
  }
  if (!selection.labels.empty() || !selection.fields.empty()) {
    std::erase_if(items, [&](const ObjectRef& object) {
      return !selection.labels.Matches(object->meta.labels) || !selection.fields.Matches(*object);
    });
  }
  if (limit > 0 && items.size() > static_cast<size_t>(limit)) {
    auto list = std::make_unique<KeptList>();
    list->id = next_list_++;
    list->resource_version = page.resource_version;
    list->of = of;
    page.items.assign(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(limit));
    page.next = absl::WebSafeBase64Escape(fmt::format("{}.{}", list->id, limit));
    page.remaining = static_cast<int64_t>(items.size()) - limit;
    list->items = std::move(items);
    kept_.push_back(std::move(list));
    if (kept_.size() > options_.kept_lists) kept_.pop_front();
  } else {
    page.items = std::move(items);
  }
  return RenderList(std::move(page), FormFor(request, target, query));
}

Response RestApi::Watch(const Request& request, const Target& target, const Query& query) {
  Selection selection;
  if (std::optional<Response> wrong = ReadSelection(*target.resource, target.name, query, &selection))
    return *std::move(wrong);
  WatchStream::Options options;
  options.ns = target.ns;
  options.labels = std::move(selection.labels);
  options.fields = std::move(selection.fields);
  if (const std::string& text = query.Get("resourceVersion"); !text.empty() && text != "0") {
    const std::optional<int64_t> version = NumberIn(text);
    if (!version) return BadRequest(NoVersion(text));
    options.after = *version;
  }
  Response response;
  if (const std::string& text = query.Get("timeoutSeconds"); !text.empty()) {
    const std::optional<int64_t> seconds = NumberIn(text);
    if (!seconds) return BadRequest(fmt::format("timeoutSeconds: Invalid value: \"{}\"", text));
    response.watch_timeout = std::chrono::seconds(std::min<int64_t>(*seconds, 24 * 3600));
  }
  response.watch_bookmarks = query.Flag("allowWatchBookmarks");
  response.watch = std::make_unique<WatchStream>(server_, lines_, FormFor(request, target, query), std::move(options));
  return response;
}

Response RestApi::Review(const Request& request, const Target& target) {
  absl::StatusOr<json> body = ParseBody(request);
  if (!body.ok()) return BadRequest(std::string(body.status().message()));
  if (!body->is_object()) return BadRequest("the object provided is unrecognized: the body must be an object");
  const Resource& resource = *target.resource;
  json spec = body->value("spec", json::object());
  if (!spec.is_object()) return Invalid(resource, "", "spec: Invalid value: must be an object");
  json out = *body;
  out["kind"] = resource.kind;
  out["apiVersion"] = resource.ApiVersion();
  if (!out.contains("metadata") || !out["metadata"].is_object()) out["metadata"] = json::object();
  out["metadata"]["creationTimestamp"] = nullptr;
  absl::StatusOr<Caller> caller = Authenticate(request);
  if (!caller.ok()) return Unauthorized();
  if (resource.kind == "SelfSubjectReview") {
    out["status"] = {{"userInfo", {{"username", caller->user}, {"groups", caller->groups}}}};
  } else if (resource.kind == "TokenReview") {
    out["status"] = ReviewToken(server_, options_.tokens, spec);
  } else if (resource.kind == "SelfSubjectRulesReview") {
    const json ns = spec.value("namespace", json(""));
    out["status"] = RulesOf(server_, *caller, ns.is_string() ? ns.get<std::string>() : "");
  } else {
    if (resource.kind != "SelfSubjectAccessReview") {
      const json user = spec.value("user", json(""));
      *caller = {user.is_string() ? user.get<std::string>() : "", {}, false, true};
      for (const json& group : spec.value("groups", json::array())) {
        if (group == "system:masters") caller->admin = true;
      }
      if (caller->user == kAdmin) caller->admin = true;
    }
    const bool allowed = MayDo(server_, *caller, spec);
    out["status"] = {{"allowed", allowed}};
    if (caller->admin) out["status"]["reason"] = "RBAC: allowed by the group system:masters";
  }
  return JsonResponse(201, out);
}

Response RestApi::IssueToken(const Request& request, const Target& target) {
  if (server_.Get(target.resource->StoreKind(), {target.ns, target.name}) == nullptr)
    return NotFound(*target.resource, target.name);
  if (options_.tokens == nullptr) return Failure(501, "NotImplemented", "this cluster issues no tokens");
  absl::StatusOr<json> body = ParseBody(request);
  if (!body.ok()) return BadRequest(std::string(body.status().message()));
  json spec = body->is_object() ? body->value("spec", json::object()) : json::object();
  if (!spec.is_object()) spec = json::object();
  constexpr int64_t kShortest = 600, kLongest = 1LL << 32;  // seconds, as the TokenRequest API has it
  int64_t seconds = 3600;
  if (const auto it = spec.find("expirationSeconds"); it != spec.end() && it->is_number_integer())
    seconds = it->get<int64_t>();
  if (seconds < kShortest || seconds > kLongest) {
    Resource review = *target.resource;
    review.kind = "TokenRequest";
    review.group = "authentication.k8s.io";
    return Invalid(review, "",
                   fmt::format("spec.expirationSeconds: Invalid value: {}: may not specify a duration {}", seconds,
                               seconds < kShortest ? "less than 10 minutes" : "larger than 2^32 seconds"));
  }
  kube::TokenClaims claims;
  claims.ns = target.ns;
  claims.service_account = target.name;
  for (const json& audience : spec.value("audiences", json::array())) {
    if (audience.is_string()) claims.audiences.push_back(audience);
  }
  claims.issued = server_.host().Now();
  claims.expires = claims.issued + std::chrono::seconds(seconds);
  if (const json bound = spec.value("boundObjectRef", json());
      bound.is_object() && bound.value("kind", json()) == "Pod") {
    const json name = bound.value("name", json(""));
    claims.pod_name = name.is_string() ? name.get<std::string>() : "";
    const ObjectRef pod = server_.Get("Pod.", {target.ns, claims.pod_name});
    if (pod == nullptr) return NotFound(*resources_.Find("", "v1", "pods"), claims.pod_name);
    claims.pod_uid = pod->meta.uid;
  }
  spec["expirationSeconds"] = seconds;
  return JsonResponse(201, {{"kind", "TokenRequest"},
                            {"apiVersion", "authentication.k8s.io/v1"},
                            {"metadata", {{"name", target.name}, {"namespace", target.ns}}},
                            {"spec", spec},
                            {"status",
                             {{"token", options_.tokens->Issue(claims)},
                              {"expirationTimestamp", kube::FormatRfc3339(server_.UnixNow() + seconds)}}}});
}

}  // namespace wavetank::fakekube::http
