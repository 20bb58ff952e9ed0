// What changes a world from outside, as values: one struct per kind, in the headers of this folder. JSON is their form
// in event logs alone; it is read and printed here and nowhere else.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace wavetank::sim {

class FieldVisitor;
struct InputTarget;

// What every kind of input has: a name as logs have it, its fields in one order for reading and printing
// (sim/inputs/fields.h), and what it does to a world.
template <class Kind>
concept InputKind = requires(Kind& kind, const Kind& constant, FieldVisitor& visitor, InputTarget& target) {
  { Kind::kKind } -> std::convertible_to<std::string_view>;
  kind.Fields(visitor);
  { constant.Apply(target) } -> std::same_as<absl::Status>;
};

class Input {
 public:
  template <InputKind Kind>
  Input(Kind what)  // NOLINT: an input is one of its kinds
      : held_(std::make_shared<const Model<Kind>>(std::move(what))) {}

  // Reads what Print() wrote. Never throws. Unimplemented: no input is of that kind. InvalidArgument names the kind,
  // the field that is missing, unknown or of another type, and what it should be.
  static absl::StatusOr<Input> Parse(std::string_view kind, const nlohmann::json& body);
  nlohmann::json Print() const;
  // The input that a log of this one holds, whatever bytes a client put into it: this one, for nearly all.
  // InvalidArgument: what is left of it is no input.
  absl::StatusOr<Input> AsItsTextSays() const;

  std::string_view kind() const { return held_->kind(); }
  // The cluster that it is done to; empty: none, or several.
  std::string cluster() const;
  // InvalidArgument: it cannot be done to that world, and nothing has changed.
  absl::Status Apply(InputTarget& target) const { return held_->Apply(target); }

  // Null: it is of another kind.
  template <InputKind Kind>
  const Kind* As() const {
    const auto* model = dynamic_cast<const Model<Kind>*>(held_.get());
    return model == nullptr ? nullptr : &model->what;
  }

  // Written by a real istiod that serves this world (World::MoveAds): where none does, the world's own write theirs.
  bool of_real_istiod = false;

 private:
  struct Held {
    virtual ~Held() = default;
    virtual std::string_view kind() const = 0;
    virtual void Visit(FieldVisitor& visitor) const = 0;
    virtual absl::Status Apply(InputTarget& target) const = 0;
  };
  template <class Kind>
  struct Model final : Held {
    explicit Model(Kind w) : what(std::move(w)) {}
    std::string_view kind() const override { return Kind::kKind; }
    // A printer changes nothing; only a reader does, which has the struct before it is held.
    void Visit(FieldVisitor& visitor) const override { const_cast<Kind&>(what).Fields(visitor); }
    absl::Status Apply(InputTarget& target) const override { return what.Apply(target); }
    const Kind what;
  };

  std::shared_ptr<const Held> held_;
};

// The names of all kinds, in order.
std::vector<std::string_view> InputKinds();

// Where the files of this folder put their kinds (kinds.cc, made by CMake, calls Register of each).
class InputTable {
 public:
  using Reader = absl::StatusOr<Input> (*)(const nlohmann::json& body);
  template <InputKind Kind>
  void Add();

 private:
  friend const InputTable& AllInputs();
  friend class Input;
  friend std::vector<std::string_view> InputKinds();
  std::vector<std::pair<std::string_view, Reader>> rows_;
};

}  // namespace wavetank::sim
