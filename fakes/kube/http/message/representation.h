// How objects look to the client that asked: which version of the API, whole, metadata only, or as rows of a table.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/kube/object.h"
#include "fakes/kube/http/api/resources.h"
#include "fakes/kube/http/message/message.h"

namespace wavetank::fakekube::http {

struct Form {
  enum class Kind : uint8_t { kWhole, kMetadata, kTable };
  enum class RowObject : uint8_t { kNone, kMetadata, kWhole };

  Kind kind = Kind::kWhole;
  RowObject rows = RowObject::kMetadata;
  std::shared_ptr<const Resource> resource;  // a copy: the definition behind it may go while a watch runs
  int64_t now_unix_seconds = 0;              // ages in tables count from here
  std::shared_ptr<const ObjectView> view;    // null: objects as they are

  // Equal for forms in which an object has the same text.
  std::string CacheKey() const;
};

// What the Accept header asks for. Protobuf is passed over: every client takes JSON beside it.
Form::Kind FormOf(std::string_view accept);

// What the client sees in place of an object.
kube::ObjectRef Seen(const kube::ObjectRef& object, const Form& form);

// The object (as it is seen already) as JSON text. `resource_version`: shown instead of its own unless 0.
std::string RenderObject(const kube::Object& object, const Form& form, int64_t resource_version = 0);

// An object that carries nothing but a version: how far a watch has come. `end_of_initial`: with the annotation that
// says that everything which was there has been told.
std::string RenderBookmark(const Form& form, int64_t resource_version, bool end_of_initial);

struct ListPage {
  std::vector<kube::ObjectRef> items;
  int64_t resource_version = 0;
  std::string next;       // the continue token
  int64_t remaining = 0;  // items after this page, if there is a next one
};
// A response that renders its items as they are sent.
Response RenderList(ListPage page, Form form);

}  // namespace wavetank::fakekube::http
