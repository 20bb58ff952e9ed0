// One request to a Kubernetes API and its answer, whatever carried them.
//
// The handler (rest.h) runs on the thread that owns the store; what a Response holds may be used on any other: objects
// are immutable.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "core/base/time.h"
#include "core/kube/object.h"

namespace wavetank::fakekube::http {

// How one kind of client sees the objects: some other than they are stored. Reads only; what it writes is stored as it
// came.
class ObjectView {
 public:
  virtual ~ObjectView() = default;
  // The object itself, or another in its place. Any thread; the same object always gives the same.
  virtual kube::ObjectRef See(const kube::ObjectRef& object) const = 0;
  // Unlike for views that show anything otherwise.
  virtual const std::string& name() const = 0;
};

// The user for whom a request claims to be made, besides the one that sends it (kubectl --as).
struct Impersonation {
  std::string user, uid;
  std::vector<std::string> groups;
  std::map<std::string, std::vector<std::string>> extra;
};

struct Request {
  std::string method;  // upper case
  std::string path;    // as it came, percent-encoded, without the query
  std::string query;   // as it came, without '?'
  std::string content_type, accept;
  std::string authorization;  // the header's value; never for logs
  Impersonation impersonate;
  // Of the client certificate that the connection's TLS has verified; "": none.
  std::string certificate_user;
  std::vector<std::string> certificate_groups;
  // Another protocol that the connection is to go on with ("SPDY/3.1", "websocket"), and what of it.
  std::string upgrade, upgrade_protocols, websocket_key;
  std::string body;
  std::shared_ptr<const nlohmann::json> parsed;  // the body, where somebody has read it already; null: `body` counts
  std::shared_ptr<const ObjectView> view;        // null: objects as they are
};

// Decoded query parameters; of several of one name the first counts, as in Kubernetes.
class Query {
 public:
  // InvalidArgument: a broken percent-encoding.
  static absl::StatusOr<Query> Parse(std::string_view text);
  const std::string& Get(std::string_view name) const;  // "" if it is not there
  bool Flag(std::string_view name) const;               // "true" or "1"
  bool Has(std::string_view name) const { return values_.find(name) != values_.end(); }

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

// Percent-decoding; `plus` reads '+' as a blank. InvalidArgument if an escape is broken or means a NUL.
absl::StatusOr<std::string> PercentDecode(std::string_view text, bool plus = false);

class Tunnel;
class LineStream;
class LaterResponse;

struct Response {
  int code = 200;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  // Instead of `body`, for what is large: appends the next piece, false at the end. Any thread, one at a time.
  std::function<bool(std::string* piece)> produce;
  // Instead of both: the stream that Start() sets going. On the store's thread only.
  std::unique_ptr<LineStream> watch;
  Duration watch_timeout{};  // zero: none asked for
  bool watch_bookmarks = false;
  // After the head: what the connection becomes, if `code` is 101.
  std::shared_ptr<Tunnel> tunnel;
  // Instead of all: what decides it takes time.
  std::shared_ptr<LaterResponse> later;
  // The API server's faults: answer so much later, or hang up without an answer.
  Duration delay{};
  bool hang_up = false;

  Response();
  ~Response();
  Response(Response&&) noexcept;
  Response& operator=(Response&&) noexcept;

  // The whole body, produced or not. For callers without a socket.
  std::string Text();
};

// An answer that comes when somebody else has decided (a webhook). On the store's thread.
class LaterResponse {
 public:
  // Calls `fn` with the answer, at once if it is there. Once.
  void Then(absl::AnyInvocable<void(Response)> fn);
  // Once.
  void Set(Response response);
  bool ready() const { return response_.has_value(); }

 private:
  std::optional<Response> response_;
  absl::AnyInvocable<void(Response)> fn_;
};

}  // namespace wavetank::fakekube::http
