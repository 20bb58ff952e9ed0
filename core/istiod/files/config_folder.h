// Istio's configurations in a folder of files, as a cluster's API server shows its custom resources: what reads those
// reads these (istiod: pilot/pkg/config/monitor, file_snapshot.go and monitor.go; `--configDir` and configSources
// fs:///).
//
// A folder of which one file cannot be read, or holds what istiod's validation refuses, stays as it was: the walk ends
// there. Objects of kinds that are not Istio's are left alone.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/host.h"
#include "core/istiod/files/local_files.h"
#include "core/kube/client.h"
#include "core/profile/profile.h"

namespace wavetank::pilot {

class ConfigFolder final : public kube::Client {
 public:
  using Warn = std::function<void(std::string text)>;

  // Reads it at once. `files` and `host` must outlive it, and so must `profile`, as whose release objects are judged.
  ConfigFolder(LocalFiles& files, Host& host, std::string folder, const Profile& profile, Warn warn);
  ~ConfigFolder() override;

  // Of all namespaces, whatever the options say: istiod asks for nothing else here.
  void List(const kube::ResourceKind& kind, const kube::ListOptions& options,
            absl::AnyInvocable<void(absl::StatusOr<kube::ObjectList>)> done) override;
  // From now on: what changed before was in the list.
  std::unique_ptr<kube::Watch> StartWatch(const kube::ResourceKind& kind, const kube::ListOptions& options,
                                          int64_t resource_version, kube::WatchCallbacks callbacks) override;
  // PermissionDenied: istiod writes no files.
  void Apply(kube::ObjectRef object, absl::AnyInvocable<void(absl::StatusOr<kube::ObjectRef>)> done) override;
  void Delete(const kube::ResourceKind& kind, const kube::NamespacedName& name,
              absl::AnyInvocable<void(absl::Status)> done) override;

 private:
  struct Follower;
  using Objects = std::map<std::string, kube::ObjectRef>;  // by kube::Object::Key()

  void Take(const LocalFiles::Folder& folder);
  absl::StatusOr<Objects> Read(const LocalFiles::Folder& folder) const;
  absl::Status ReadFile(const std::string& path, const std::string& text, Objects* out) const;
  kube::ObjectRef Dated(const kube::ObjectRef& object) const;
  void Tell(const kube::WatchEvent& event);

  Host& host_;
  const Profile& profile_;
  const Warn warn_;
  Objects objects_;
  int64_t version_ = 1;
  std::vector<Follower*> followers_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace wavetank::pilot
