#include "fakes/kube/http/message/representation.h"

#include <fmt/format.h>

#include <utility>

#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/json_text.h"
#include "fakes/kube/http/message/event_views.h"
#include "fakes/kube/http/message/status.h"
#include "fakes/kube/objects/autoscaler_versions.h"
#include "fakes/kube/printing/table_printer.h"

namespace wavetank::fakekube::http {
namespace {

using nlohmann::json;

constexpr size_t kPiece = 64 * 1024;

json PartialOf(const kube::Object& object, int64_t resource_version) {
  json out = {{"kind", "PartialObjectMetadata"}, {"apiVersion", "meta.k8s.io/v1"}};
  if (const auto metadata = object.body.find("metadata"); metadata != object.body.end()) out["metadata"] = *metadata;
  if (resource_version != 0) out["metadata"]["resourceVersion"] = std::to_string(resource_version);
  return out;
}

bool ShowsAsIs(const kube::Object& object, const Form& form, int64_t resource_version) {
  return (resource_version == 0 || resource_version == object.meta.resource_version) &&
         form.resource->ApiVersion() == object.api_version;
}

json WholeOf(const kube::Object& object, const Form& form, int64_t resource_version) {
  json copy = form.resource->event_view ? ToEventsGroup(object.body) : object.body;
  if (form.resource->ApiVersion() == "autoscaling/v1") ToAutoscalingV1(copy);
  if (form.resource->ApiVersion() == "autoscaling/v2") ToAutoscalingV2(copy);
  copy["apiVersion"] = form.resource->ApiVersion();
  if (resource_version != 0) copy["metadata"]["resourceVersion"] = std::to_string(resource_version);
  return copy;
}

// Rows are made of what is stored. The answer refers to the form.
GroupKind StoredKind(const Form& form) {
  return {form.resource->kind, form.resource->event_view ? std::string_view() : form.resource->group};
}

json RowOf(const kube::Object& object, const Form& form, int64_t resource_version) {
  json row = {{"cells", TableCells(StoredKind(form), form.resource->printer_columns, object, form.now_unix_seconds)}};
  if (form.rows == Form::RowObject::kMetadata) row["object"] = PartialOf(object, resource_version);
  if (form.rows == Form::RowObject::kWhole) row["object"] = WholeOf(object, form, resource_version);
  return row;
}

json TableHead(const Form& form, json metadata) {
  return {{"kind", "Table"},
          {"apiVersion", "meta.k8s.io/v1"},
          {"metadata", std::move(metadata)},
          {"columnDefinitions", TableColumns(StoredKind(form), form.resource->printer_columns)}};
}

json ListMetadata(const ListPage& page) {
  json metadata = {{"resourceVersion", std::to_string(page.resource_version)}};
  if (!page.next.empty()) {
    metadata["continue"] = page.next;
    metadata["remainingItemCount"] = page.remaining;
  }
  return metadata;
}

}  // namespace

std::string Form::CacheKey() const {
  return fmt::format("{}/{}/{}/{}/{}/{}", static_cast<int>(kind), static_cast<int>(rows), resource->group,
                     resource->version, resource->plural, view == nullptr ? "" : view->name());
}

kube::ObjectRef Seen(const kube::ObjectRef& object, const Form& form) {
  return form.view == nullptr || object == nullptr ? object : form.view->See(object);
}

Form::Kind FormOf(std::string_view accept) {
  for (absl::string_view range : absl::StrSplit(absl::string_view(accept.data(), accept.size()), ',')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(range, ';');
    const absl::string_view type = absl::StripAsciiWhitespace(parts.front());
    if (type != "application/json" && type != "*/*" && type != "application/*") continue;
    absl::string_view as, group;
    for (absl::string_view part : parts) {
      part = absl::StripAsciiWhitespace(part);
      if (absl::ConsumePrefix(&part, "as=")) as = part;
      if (absl::ConsumePrefix(&part, "g=")) group = part;
    }
    if (as.empty()) return Form::Kind::kWhole;
    if (group != "meta.k8s.io") continue;
    if (as == "Table") return Form::Kind::kTable;
    if (as == "PartialObjectMetadata" || as == "PartialObjectMetadataList") return Form::Kind::kMetadata;
  }
  return Form::Kind::kWhole;
}

std::string RenderObject(const kube::Object& object, const Form& form, int64_t resource_version) {
  switch (form.kind) {
    case Form::Kind::kMetadata:
      return JsonText(PartialOf(object, resource_version));
    case Form::Kind::kTable: {
      json table =
          TableHead(form, {{"resourceVersion",
                            std::to_string(resource_version != 0 ? resource_version : object.meta.resource_version)}});
      table["rows"] = json::array({RowOf(object, form, resource_version)});
      return JsonText(table);
    }
    case Form::Kind::kWhole:
      break;
  }
  // What is shown as it is stored needs no copy.
  if (ShowsAsIs(object, form, resource_version)) return JsonText(object.body);
  return JsonText(WholeOf(object, form, resource_version));
}

std::string RenderBookmark(const Form& form, int64_t resource_version, bool end_of_initial) {
  const json version = {{"resourceVersion", std::to_string(resource_version)}};
  json object = {{"kind", form.resource->kind}, {"apiVersion", form.resource->ApiVersion()}, {"metadata", version}};
  object["metadata"]["creationTimestamp"] = nullptr;
  // apimachinery: metav1.InitialEventsAnnotationKey.
  if (end_of_initial) object["metadata"]["annotations"] = {{"k8s.io/initial-events-end", "true"}};
  if (form.kind != Form::Kind::kWhole) {
    object["kind"] = "PartialObjectMetadata";
    object["apiVersion"] = "meta.k8s.io/v1";
  }
  if (form.kind != Form::Kind::kTable) return JsonText(object);
  json table = TableHead(form, version);
  table["rows"] = json::array();
  // The annotation stands in a row, whose cells have nothing to show.
  if (end_of_initial) {
    const json cells(table["columnDefinitions"].size(), json(nullptr));
    table["rows"].push_back({{"cells", cells}, {"object", std::move(object)}});
  } else {
    table["columnDefinitions"] = json::array();
  }
  return JsonText(table);
}

Response RenderList(ListPage page, Form form) {
  json head = {{"kind", form.resource->kind + "List"}, {"apiVersion", form.resource->ApiVersion()}};
  if (form.kind == Form::Kind::kMetadata)
    head = {{"kind", "PartialObjectMetadataList"}, {"apiVersion", "meta.k8s.io/v1"}};
  head["metadata"] = ListMetadata(page);
  const bool table = form.kind == Form::Kind::kTable;
  if (table) head = TableHead(form, ListMetadata(page));
  std::string start = JsonText(head);
  start.pop_back();
  start += table ? ",\"rows\":[" : ",\"items\":[";
  Response response;
  struct State {
    std::vector<kube::ObjectRef> items;
    Form form;
    std::string start;
    size_t next = 0;
  };
  auto state = std::make_shared<State>(State{std::move(page.items), std::move(form), std::move(start), 0});
  response.produce = [state](std::string* piece) {
    *piece += std::exchange(state->start, std::string());
    const size_t until = piece->size() + kPiece;
    while (state->next < state->items.size()) {
      if (state->next > 0) *piece += ',';
      const kube::ObjectRef seen = Seen(state->items[state->next], state->form);
      const kube::Object& object = *seen;
      *piece += state->form.kind == Form::Kind::kTable ? JsonText(RowOf(object, state->form, 0))
                                                       : RenderObject(object, state->form);
      state->items[state->next++].reset();
      if (piece->size() >= until && state->next < state->items.size()) return true;
    }
    *piece += "]}\n";
    return false;
  };
  return response;
}

}  // namespace wavetank::fakekube::http
