// A kube::Client for a real API server, read-only: lists in pages and watches by HTTP, as client-go asks for them
// (KUBE API conventions; limit and continue, watch=true with bookmarks). With core/kube/informer.h on top, which brings
// client-go's back-off and relisting, it is a reflector.
//
// Fault model: everything that a server sends is checked: sizes, nesting, JSON, metadata. An object that cannot be read
// is left out and reported; a list or watch that cannot be read fails, and is tried again by the informer.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "core/base/host.h"
#include "core/base/random.h"
#include "core/kube/client.h"
#include "record/transport.h"

namespace wavetank::record {

struct RestLimits {
  size_t page = 500;                  // objects per page of a list
  size_t max_page_bytes = 256 << 20;  // of one page
  size_t max_line_bytes = 16 << 20;   // of one event of a watch
  Duration watch_timeout = 5min;      // asked of the server; twice that at most, as client-go
  Duration watch_grace = 30s;         // a watch that is silent for so much longer is broken
};

class RestClient final : public kube::Client {
 public:
  // All must outlive it. `jitter` draws how long each watch lasts.
  RestClient(Host& host, Transport& transport, RandomStream jitter, RestLimits limits = {});
  ~RestClient() override;

  // Sees what goes wrong: of which kind, and why. Messages hold nothing of what the server sent but its own message.
  std::function<void(const kube::ResourceKind& kind, const kube::ListOptions& options, const absl::Status& why)>
      on_problem;

  // What the server does not have (404), or from the first did not let us list (403), is an empty list of version 0;
  // a watch of version 0 ends with OutOfRange, so that it is asked for again and again.
  void List(const kube::ResourceKind& kind, const kube::ListOptions& options,
            absl::AnyInvocable<void(absl::StatusOr<kube::ObjectList>)> done) override;
  std::unique_ptr<kube::Watch> StartWatch(const kube::ResourceKind& kind, const kube::ListOptions& options,
                                          int64_t resource_version, kube::WatchCallbacks callbacks) override;
  // Unimplemented: a recording changes nothing.
  void Apply(kube::ObjectRef object, absl::AnyInvocable<void(absl::StatusOr<kube::ObjectRef>)> done) override;
  void Delete(const kube::ResourceKind& kind, const kube::NamespacedName& name,
              absl::AnyInvocable<void(absl::Status)> done) override;

  // "/api/v1/namespaces/sample/pods?labelSelector=..."
  static std::string Target(const kube::ResourceKind& kind, const kube::ListOptions& options, std::string_view more);

 private:
  class Listing;
  class Watching;

  void Report(const kube::ResourceKind& kind, const kube::ListOptions& options, const absl::Status& why);

  Host& host_;
  Transport& transport_;
  RandomStream jitter_;
  const RestLimits limits_;
  std::set<std::string> listed_;  // targets that have been listed once
  std::set<std::shared_ptr<Listing>> under_way_;
};

// JSON of at most `max_depth` levels; InvalidArgument for anything else. The text may be hostile.
absl::StatusOr<nlohmann::json> ParseHostileJson(std::string_view text, int max_depth = 100);

}  // namespace wavetank::record
