#include "core/kube/filtered_informer.h"

#include <memory>

namespace wavetank::kube {

void FilteredInformer::AddHandler(Informer::Handler handler) {
  const auto inner = std::make_shared<Informer::Handler>(std::move(handler));
  informer_.AddHandler({[this, inner](const ObjectRef& object) {
                          if (inner->on_add && filter_(*object)) inner->on_add(object);
                        },
                        [this, inner](const ObjectRef& old, const ObjectRef& now) {
                          const bool before = filter_(*old), after = filter_(*now);
                          if (before && after) {
                            if (inner->on_update) inner->on_update(old, now);
                          } else if (after) {
                            if (inner->on_add) inner->on_add(now);
                          } else if (before) {
                            if (inner->on_delete) inner->on_delete(old);
                          }
                        },
                        [this, inner](const ObjectRef& last) {
                          if (inner->on_delete && filter_(*last)) inner->on_delete(last);
                        }});
}

ObjectRef FilteredInformer::Get(std::string_view ns, std::string_view name) const {
  ObjectRef object = informer_.Get(ns, name);
  return object != nullptr && filter_(*object) ? object : nullptr;
}

std::vector<ObjectRef> FilteredInformer::List(std::string_view ns) const {
  std::vector<ObjectRef> out = informer_.List(ns);
  std::erase_if(out, [this](const ObjectRef& object) { return !filter_(*object); });
  return out;
}

}  // namespace wavetank::kube
