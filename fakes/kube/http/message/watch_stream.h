// One client's watch: the changes of one resource that its selectors let through, as lines of JSON.
//
// Lines are shared: the text of one change in one form is rendered once, however many watch.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>

#include "core/kube/label_selector.h"
#include "fakes/kube/http/message/line_stream.h"
#include "fakes/kube/http/message/representation.h"
#include "fakes/kube/objects/selector.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube::http {

// The lines that anybody still has to be sent, and those of the change that was sent last: however many watch, and
// however slowly they read, a line is there once.
class LineCache {
 public:
  Line Event(std::string_view type, const ObjectRef& object, int64_t resource_version, const Form& form,
             const std::string& form_key);

 private:
  struct Shared {
    std::weak_ptr<const kube::Object> object;  // whose address the key is
    std::weak_ptr<const std::string> line;
  };
  using Key = std::tuple<const kube::Object*, int64_t, std::string>;  // object, version, event and form

  void Sweep();

  ObjectRef object_;
  int64_t resource_version_ = 0;
  std::map<std::string, Line> lines_;
  std::map<Key, Shared> shared_;
  size_t swept_ = 0;  // how many were left by the last sweep
};

// On the store's thread only, its end included.
class WatchStream final : public LineStream {
 public:
  struct Options {
    std::string ns;  // empty: all
    kube::LabelSelector labels;
    FieldSelector fields;
    // Events after this version. Negative: first every object there is as ADDED, as a client without a version gets.
    int64_t after = -1;
    // A bookmark says when all of those have been told, as it ends a streaming list (client-go's WatchList).
    bool tell_end_of_initial = false;
  };

  WatchStream(ApiServer& server, std::shared_ptr<LineCache> cache, Form form, Options options);
  ~WatchStream() override;
  WatchStream(const WatchStream&) = delete;
  WatchStream& operator=(const WatchStream&) = delete;

  // A version that the server cannot go on from (too old, or of another server's life) is an ERROR line with 410, then
  // the end.
  void Start(std::function<void(Line)> write, std::function<void()> end) override;

  Line Bookmark() const override;

 private:
  bool Matches(const kube::Object& object) const;
  void On(const Change& change);
  void Fail(const absl::Status& status);
  Line BookmarkLine(bool end_of_initial) const;

  ApiServer& server_;
  std::shared_ptr<LineCache> cache_;
  Form form_;
  const std::string form_key_;
  const Options options_;
  ApiServer::WatchId id_ = 0;
  std::function<void(Line)> write_;
  std::function<void()> end_;
};

}  // namespace wavetank::fakekube::http
