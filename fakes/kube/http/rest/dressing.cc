#include "fakes/kube/http/rest/dressing.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/json_text.h"
#include "fakes/kube/http/message/line_stream.h"

namespace wavetank::fakekube::http {

using nlohmann::json;

namespace {

// JSON with line breaks and two blanks a level, from pieces of JSON without any.
class LineBreaks {
 public:
  void Add(std::string_view text, std::string* out) {
    for (const char c : text) Add(c, out);
  }

 private:
  void Add(char c, std::string* out) {
    if (in_string_) {
      *out += c;
      in_string_ = escaped_ || c != '"';
      escaped_ = c == '\\' && !escaped_;
      return;
    }
    if (c == ' ' || c == '\n') return;
    const bool closes = c == '}' || c == ']';
    if (closes) --depth_;
    // What is empty stays on its line.
    if (closes ? !opened_ : opened_) NewLine(out);
    opened_ = c == '{' || c == '[';
    if (opened_) ++depth_;
    *out += c;
    in_string_ = c == '"';
    if (c == ':') *out += ' ';
    if (c == ',' || (closes && depth_ == 0)) NewLine(out);
  }
  void NewLine(std::string* out) const { *out += '\n' + std::string(2 * depth_, ' '); }

  size_t depth_ = 0;
  bool in_string_ = false, escaped_ = false, opened_ = false;
};

// Streams and what comes later stay as they are; a list is still rendered while it is sent.
void Prettify(Response* response) {
  if (response->watch != nullptr || response->later != nullptr || response->tunnel != nullptr || response->hang_up ||
      response->content_type != "application/json")
    return;
  auto breaks = std::make_shared<LineBreaks>();
  if (response->produce) {
    response->produce = [breaks, inner = std::move(response->produce)](std::string* piece) {
      std::string raw;
      const bool more = inner(&raw);
      breaks->Add(raw, piece);
      return more;
    };
    return;
  }
  std::string body;
  breaks->Add(response->body, &body);
  response->body = std::move(body);
}

}  // namespace

void Dress(const Call& call, const KubernetesRelease& release, Response* response) {
  const auto warn = [&](const std::string& text) {
    response->headers.emplace_back("Warning", "299 - " + JsonText(json(text)));
  };
  if (call.of_resource()) {
    const Resource& resource = *call.target.resource;
    if (!resource.deprecation.empty()) warn(resource.deprecation);
    // kubernetes: staging/src/k8s.io/api/core/v1/zz_generated.prerelease-lifecycle.go.
    if (release.endpoints_deprecated() && resource.group.empty() && resource.plural == "endpoints")
      warn("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice");
  }
  if (call.query.Flag("pretty")) Prettify(response);
}

bool SaysWhoAsks(const Call& call) {
  return call.request->method == "POST" && call.of_resource() && call.target.name.empty() &&
         call.target.resource->StoreKind() == "CertificateSigningRequest.certificates.k8s.io";
}

// kubernetes: pkg/registry/certificates/certificates/strategy.go, PrepareForCreate().
json WithCaller(const Call& call, json body) {
  if (!SaysWhoAsks(call) || !call.caller.ok() || !body.is_object()) return body;
  const auto spec = body.find("spec");
  if (spec == body.end() || !spec->is_object()) return body;  // which is refused
  for (const char* field : {"uid", "extra"}) spec->erase(field);
  (*spec)["username"] = call.caller->user;
  (*spec)["groups"] = call.caller->groups;
  if (!call.caller->uid.empty()) (*spec)["uid"] = call.caller->uid;
  if (!call.caller->extra.empty()) (*spec)["extra"] = call.caller->extra;
  body.erase("status");
  return body;
}

}  // namespace wavetank::fakekube::http
