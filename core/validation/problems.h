// What is wrong with an object, as istiod's validation gathers it: one error as it is, several as
// github.com/hashicorp/go-multierror prints them; and what it only warns of.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/profile/profile.h"

namespace wavetank::validation {

class Problems {
 public:
  Problems() = default;
  // `profile`: of the istiod whose rules these are; it must outlive this.
  explicit Problems(const pilot::Profile& profile) : profile_(&profile) {}
  bool Has(pilot::Change change) const { return profile_ != nullptr && profile_->Has(change); }
  // Without any.
  Problems OfSameRelease() const { return profile_ == nullptr ? Problems() : Problems(*profile_); }
  // Nothing is added for an empty text.
  void Add(std::string text) {
    if (!text.empty()) all_.push_back(std::move(text));
  }
  // An error that istiod always puts into a list, be it alone.
  void AddToList(std::string text) {
    listed_ = true;
    Add(std::move(text));
  }
  // Nothing for an empty text.
  void Warn(std::string text) {
    if (!text.empty()) warnings_.push_back(std::move(text));
  }
  // Before each error (go-multierror: Prefix).
  void Prefix(const std::string& text) {
    for (std::string& one : all_) one = text + " " + one;
  }
  bool empty() const { return all_.empty(); }
  size_t size() const { return all_.size(); }
  const std::vector<std::string>& warnings() const { return warnings_; }
  // "" if there are none.
  std::string Text() const;

 private:
  friend class Unwarned;
  std::vector<std::string> all_, warnings_;
  bool listed_ = false;
  const pilot::Profile* profile_ = nullptr;
};

// While it lives, warnings are forgotten: istiod's appendErrors() keeps errors only.
class Unwarned {
 public:
  explicit Unwarned(Problems& problems) : problems_(problems), kept_(problems.warnings_.size()) {}
  ~Unwarned() { problems_.warnings_.resize(kept_); }
  Unwarned(const Unwarned&) = delete;
  Unwarned& operator=(const Unwarned&) = delete;

 private:
  Problems& problems_;
  const size_t kept_;
};

}  // namespace wavetank::validation
