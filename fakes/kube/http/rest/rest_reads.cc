// The part of the REST API that shows what is stored: gets, lists, watches.
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
#include "fakes/kube/http/api/api_types.h"
#include "fakes/kube/http/api/go_words.h"
#include "fakes/kube/http/api/protobuf_body.h"
#include "fakes/kube/http/message/list_options.h"
#include "fakes/kube/http/message/status.h"
#include "fakes/kube/http/rest/discovery.h"
#include "fakes/kube/http/rest/openapi.h"
#include "fakes/kube/http/rest/preconditions.h"
#include "fakes/kube/http/rest/rest.h"
#include "fakes/kube/http/rest/reviews.h"

namespace wavetank::fakekube::http {
namespace {

using nlohmann::json;

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

Form RestApi::FormFor(const Call& call) const {
  Form form;
  form.kind = FormOf(call.request->accept);
  form.resource = call.target.resource;
  form.now_unix_seconds = server_.UnixNow();
  form.view = call.request->view;
  const std::string& include = call.query.Get("includeObject");
  if (include == "Object") form.rows = Form::RowObject::kWhole;
  if (include == "None") form.rows = Form::RowObject::kNone;
  return form;
}

Response RestApi::One(int code, const kube::Object& object, const Call& call) const {
  Response response;
  response.code = code;
  response.body = RenderObject(object, FormFor(call)) + "\n";
  return response;
}

Response RestApi::Read(const Call& call) {
  const ObjectRef object = StoreOf(call).Get(call.target.resource->StoreKind(), {call.target.ns, call.target.name});
  if (object == nullptr) return NotFound(*call.target.resource, call.target.name);
  return One(200, *(call.request->view == nullptr ? object : call.request->view->See(object)), call);
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

Response RestApi::List(const Call& call) {
  Selection selection;
  if (std::optional<Response> wrong = ReadSelection(*call.target.resource, "", call.query, &selection))
    return *std::move(wrong);
  if (std::optional<Response> wrong = CheckListOptions(call.query, false)) return *std::move(wrong);
  int64_t limit = 0;
  if (const std::string& text = call.query.Get("limit"); !text.empty()) {
    const std::optional<int64_t> number = NumberIn(text);
    if (!number) return BadRequest(fmt::format("strconv.ParseInt: parsing {}: invalid syntax", JsonText(json(text))));
    limit = *number;
  }
  const std::string of =
      fmt::format("{}\n{}\n{}", call.request->path, call.query.Get("labelSelector"), call.query.Get("fieldSelector"));
  ListPage page;
  ApiServer& store = StoreOf(call);
  page.resource_version = store.VisibleVersion();
  if (const std::string& text = call.query.Get("continue"); !text.empty()) {
    // apiserver: pkg/storage, ValidateListOptions().
    if (const std::string& version = call.query.Get("resourceVersion"); !version.empty() && version != "0")
      return BadRequest("specifying resource version is not allowed when using continue");
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
    return RenderList(std::move(page), FormFor(call));
  }
  if (const std::string& text = call.query.Get("resourceVersion"); !text.empty() && text != "0") {
    const std::optional<int64_t> version = NumberIn(text);
    if (!version) return BadRequest(NoVersion(text));
    if (*version > page.resource_version) return TooLargeVersion(*version, page.resource_version);
    // Only the present is kept whole.
    if (call.query.Get("resourceVersionMatch") == "Exact" && *version != page.resource_version)
      return Failure(410, "Expired",
                     fmt::format("The resourceVersion for the provided list is too old: {} ({})", *version,
                                 page.resource_version));
  }
  const std::string kind = call.target.resource->StoreKind();
  std::vector<ObjectRef> items;
  const std::optional<std::string> name = selection.fields.Exactly("metadata.name");
  const bool stale = store.VisibleVersion() != store.resource_version();
  if (name && !stale && (!call.target.ns.empty() || !call.target.resource->namespaced)) {
    if (ObjectRef object = store.Get(kind, {call.target.ns, *name}); object != nullptr)
      items.push_back(std::move(object));
  } else {
    items = store.ListForClients(kind, call.target.ns).items;
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
  return RenderList(std::move(page), FormFor(call));
}

Response RestApi::Watch(const Call& call) {
  Selection selection;
  if (std::optional<Response> wrong = ReadSelection(*call.target.resource, call.target.name, call.query, &selection))
    return *std::move(wrong);
  if (std::optional<Response> wrong = CheckListOptions(call.query, true)) return *std::move(wrong);
  WatchStream::Options options;
  options.ns = call.target.ns;
  options.labels = std::move(selection.labels);
  options.fields = std::move(selection.fields);
  const int64_t now = StoreOf(call).VisibleVersion();
  const bool bookmarks = call.query.Flag("allowWatchBookmarks");
  // A client that does not say whether it wants what is there gets it where it names no version.
  const std::optional<bool> initial = OptionalFlag(call.query, "sendInitialEvents");
  if (const std::string& text = call.query.Get("resourceVersion"); !text.empty() && text != "0") {
    const std::optional<int64_t> version = NumberIn(text);
    if (!version) return BadRequest(NoVersion(text));
    options.after = *version;
    if (initial == true && *version > now) return TooLargeVersion(*version, now);
  } else if (initial == false) {
    options.after = now;
  }
  if (initial == true) {
    options.after = -1;
    options.tell_end_of_initial = bookmarks;
  }
  Response response;
  if (const std::string& text = call.query.Get("timeoutSeconds"); !text.empty()) {
    const std::optional<int64_t> seconds = NumberIn(text);
    if (!seconds) return BadRequest(fmt::format("timeoutSeconds: Invalid value: \"{}\"", text));
    response.watch_timeout = std::chrono::seconds(std::min<int64_t>(*seconds, 24 * 3600));
  }
  response.watch_bookmarks = bookmarks;
  response.watch = std::make_unique<WatchStream>(StoreOf(call), lines_, FormFor(call), std::move(options));
  return response;
}

}  // namespace wavetank::fakekube::http
