// The SubjectAccessReview API of a cluster: which user may do what.
#pragma once

#include <string>
#include <string_view>

namespace wavetank::kube {

struct AccessRequest {
  std::string user;  // "system:serviceaccount:ns:name"
  std::string verb;  // "list"
  std::string group, resource, ns;
  std::string name;  // of the one object that is meant; "" for all of them
};

class AccessReviewer {
 public:
  virtual ~AccessReviewer() = default;
  // Answers at once: the caller (istiod, while it generates) waits for the answer in reality.
  virtual bool Allowed(const AccessRequest& request) const = 0;
};

// The user that a ServiceAccount's token stands for.
std::string ServiceAccountUser(std::string_view ns, std::string_view name);

}  // namespace wavetank::kube
