#include "core/base/cel/cel_optional.h"

#include <memory>
#include <string>

namespace wavetank::cel {
namespace {

// cel-go: traits.Zeroer of each type.
bool IsZeroValue(const CelValue& of) {
  if (const auto* optional = OptionalIn(of)) return !optional->has();
  if (of.As<CelNull>() != nullptr) return true;
  if (const auto* flag = of.As<bool>()) return !*flag;
  if (const auto* number = of.As<int64_t>()) return *number == 0;
  if (const auto* number = of.As<uint64_t>()) return *number == 0;
  if (const auto* number = of.As<double>()) return *number == 0;
  if (const auto* text = of.As<std::string>()) return text->empty();
  if (const auto* bytes = of.As<CelBytes>()) return bytes->bytes.empty();
  if (const auto* span = of.As<absl::Duration>()) return *span == absl::ZeroDuration();
  if (const auto* list = of.As<std::shared_ptr<const CelList>>()) return (*list)->empty();
  if (const auto* map = of.As<std::shared_ptr<const CelMap>>()) return (*map)->size() == 0;
  return false;
}

}  // namespace

CelValue MakeOptional(CelValue value) {
  return {std::shared_ptr<const CelMap>(std::make_shared<CelOptional>(std::move(value)))};
}

CelValue NoOptional() { return {std::shared_ptr<const CelMap>(std::make_shared<CelOptional>())}; }

const CelOptional* OptionalIn(const CelValue& value) {
  const auto* const map = value.As<std::shared_ptr<const CelMap>>();
  return map == nullptr ? nullptr : dynamic_cast<const CelOptional*>(map->get());
}

CelValue OptionalCall(CelFunction f, const std::vector<CelValue>& of) {
  const CelValue& a = of.front();
  switch (f) {
    case CelFunction::kSelectOptional:
    case CelFunction::kIndexOptional:
      return OptionalField(a, of[1]);
    case CelFunction::kOptionalPart:
      return a;
    case CelFunction::kOptionalOf:
      return MakeOptional(a);
    case CelFunction::kOptionalOfNonZero:
      return IsZeroValue(a) ? NoOptional() : MakeOptional(a);
    default:
      break;
  }
  const CelOptional* const optional = OptionalIn(a);
  if (optional == nullptr) return {};
  if (f == CelFunction::kHasValue) return {optional->has()};
  return optional->has() ? optional->value() : CelFailure("optional.none() dereference");
}

}  // namespace wavetank::cel
