// What programs written with client-go and controller-runtime do: a controller with leader election, informers,
// server-side apply, finalizers, owners. Run with a kubeconfig in KUBECONFIG; prints a line per check.
package main

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr/funcr"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authenticationv1beta1 "k8s.io/api/authentication/v1beta1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/pager"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const ns = "widgets"

var failed int

func check(name string, fn func() error) {
	start := time.Now()
	err := fn()
	if err != nil {
		failed++
		fmt.Printf("DIFFERS %s: %v\n", name, err)
		return
	}
	fmt.Printf("ok %s (%d ms)\n", name, time.Since(start).Milliseconds())
}

func eventually(what string, fn func() (bool, string)) error {
	var why string
	for i := 0; i < 300; i++ {
		var done bool
		if done, why = fn(); done {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("%s: not within 30 s: %s", what, why)
}

func expect(ok bool, format string, args ...interface{}) error {
	if ok {
		return nil
	}
	return fmt.Errorf(format, args...)
}

func main() {
	ctrl.SetLogger(funcr.New(func(string, string) {}, funcr.Options{}))
	cfg, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		panic(err)
	}
	cfg.QPS, cfg.Burst = 1000, 1000
	_ = apiextensionsv1.AddToScheme(clientgoscheme.Scheme)
	ctx := context.Background()
	kube := kubernetes.NewForConfigOrDie(cfg)
	proto := rest.CopyConfig(cfg)
	proto.ContentType = "application/vnd.kubernetes.protobuf"
	proto.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	kubeProto := kubernetes.NewForConfigOrDie(proto)
	dyn := dynamic.NewForConfigOrDie(cfg)
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		panic(err)
	}

	check("discovery", func() error {
		_, all, err := kube.Discovery().ServerGroupsAndResources()
		if err != nil {
			return err
		}
		preferred, err := kube.Discovery().ServerPreferredResources()
		if err != nil {
			return err
		}
		v, err := kube.Discovery().ServerVersion()
		if err != nil {
			return err
		}
		if _, err := kube.Discovery().OpenAPISchema(); err != nil {
			return err
		}
		paths, err := kube.Discovery().OpenAPIV3().Paths()
		if err != nil {
			return err
		}
		for p, gv := range paths {
			if _, err := gv.Schema("application/json"); err != nil {
				return fmt.Errorf("%s: %v", p, err)
			}
		}
		fmt.Printf("   %s, %d group versions, %d preferred\n", v.GitVersion, len(all), len(preferred))
		return nil
	})

	check("namespace and definition", func() error {
		_, err := kubeProto.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		preserve := func(t string) apiextensionsv1.JSONSchemaProps { return apiextensionsv1.JSONSchemaProps{Type: t} }
		min := float64(1)
		crd := &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
				Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList", ShortNames: []string{"wd"}},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
					Name: "v1", Served: true, Storage: true,
					Subresources: &apiextensionsv1.CustomResourceSubresources{
						Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
						Scale:  &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.size", StatusReplicasPath: ".status.size"},
					},
					Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
						Type: "object",
						Properties: map[string]apiextensionsv1.JSONSchemaProps{
							"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
								"size":  {Type: "integer", Minimum: &min, Default: &apiextensionsv1.JSON{Raw: []byte("1")}},
								"color": preserve("string"),
							}},
							"status": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"observedGeneration": preserve("integer"), "size": preserve("integer")}},
						}}},
				}},
			},
		}
		if err := c.Create(ctx, crd); err != nil {
			return err
		}
		return eventually("established", func() (bool, string) {
			if err := c.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
				return false, err.Error()
			}
			for _, cond := range crd.Status.Conditions {
				if cond.Type == apiextensionsv1.Established && cond.Status == apiextensionsv1.ConditionTrue {
					return true, ""
				}
			}
			return false, fmt.Sprint(crd.Status)
		})
	})

	mu := &sync.Mutex{}
	by := map[string]int{}
	ctxA, stopA := context.WithCancel(ctx)
	ctxB, stopB := context.WithCancel(ctx)
	var electedA, electedB <-chan struct{}
	var doneA, doneB <-chan error
	check("a manager is elected, a second one waits", func() error {
		electedA, doneA = startManager(ctxA, cfg, "a", mu, by)
		select {
		case <-electedA:
		case err := <-doneA:
			return fmt.Errorf("ended: %v", err)
		case <-time.After(20 * time.Second):
			return fmt.Errorf("nobody elected")
		}
		electedB, doneB = startManager(ctxB, cfg, "b", mu, by)
		select {
		case <-electedB:
			return fmt.Errorf("two leaders")
		case err := <-doneB:
			return fmt.Errorf("ended: %v", err)
		case <-time.After(3 * time.Second):
		}
		lease, err := kube.CoordinationV1().Leases(ns).Get(ctx, "widgets.example.com", metav1.GetOptions{})
		if err != nil {
			return err
		}
		return expect(lease.Spec.RenewTime != nil && lease.Spec.HolderIdentity != nil && *lease.Spec.LeaseDurationSeconds == 4, "%v", lease.Spec)
	})
	reconciled := func(name string, size int64) error {
		return eventually(name, func() (bool, string) {
			w := newWidget(name)
			if err := c.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil {
				return false, err.Error()
			}
			observed, _, _ := unstructured.NestedInt64(w.Object, "status", "observedGeneration")
			got, _, _ := unstructured.NestedInt64(w.Object, "status", "size")
			cm, err := kube.CoreV1().ConfigMaps(ns).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return false, err.Error()
			}
			return observed == w.GetGeneration() && got == size && cm.Data["size"] == fmt.Sprint(size), fmt.Sprint(w.Object)
		})
	}
	check("widgets are reconciled, with defaults", func() error {
		for i := 0; i < 20; i++ {
			w := newWidget(fmt.Sprintf("w%02d", i))
			if err := c.Create(ctx, w); err != nil {
				return err
			}
		}
		for i := 0; i < 20; i++ {
			if err := reconciled(fmt.Sprintf("w%02d", i), 1); err != nil {
				return err
			}
		}
		return nil
	})
	check("a changed spec raises the generation, a status does not", func() error {
		w := newWidget("w00")
		if err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
			if err := c.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil {
				return err
			}
			_ = unstructured.SetNestedField(w.Object, int64(5), "spec", "size")
			_ = unstructured.SetNestedField(w.Object, int64(77), "status", "size")
			return c.Update(ctx, w)
		}); err != nil {
			return err
		}
		if w.GetGeneration() != 2 {
			return fmt.Errorf("generation %d", w.GetGeneration())
		}
		return reconciled("w00", 5)
	})
	check("a stale update is a conflict", func() error {
		w := newWidget("w01")
		if err := c.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil {
			return err
		}
		w.SetResourceVersion("1")
		w.SetLabels(map[string]string{"a": "b"})
		err := c.Update(ctx, w)
		return expect(apierrors.IsConflict(err), "%v", err)
	})
	check("an invalid object is refused with causes", func() error {
		w := newWidget("bad")
		_ = unstructured.SetNestedField(w.Object, int64(0), "spec", "size")
		err := c.Create(ctx, w)
		st, ok := err.(apierrors.APIStatus)
		return expect(apierrors.IsInvalid(err) && ok && len(st.Status().Details.Causes) == 1 && st.Status().Details.Causes[0].Field == "spec.size", "%v", err)
	})
	check("an owned object that is deleted comes again", func() error {
		cm, err := kube.CoreV1().ConfigMaps(ns).Get(ctx, "w02", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := kube.CoreV1().ConfigMaps(ns).Delete(ctx, "w02", metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(cm.UID))}); err != nil {
			return err
		}
		return eventually("w02", func() (bool, string) {
			again, err := kube.CoreV1().ConfigMaps(ns).Get(ctx, "w02", metav1.GetOptions{})
			return err == nil && again.UID != cm.UID, fmt.Sprint(err)
		})
	})
	check("events of a recorder", func() error {
		return eventually("events", func() (bool, string) {
			w := newWidget("w03")
			_ = c.Get(ctx, client.ObjectKeyFromObject(w), w)
			list, err := kube.CoreV1().Events(ns).Search(clientgoscheme.Scheme, w)
			if err != nil {
				return false, err.Error()
			}
			return len(list.Items) == 1 && list.Items[0].Reason == "Applied" && list.Items[0].Source.Component == "widgets", fmt.Sprint(list.Items)
		})
	})
	check("finalizers hold, owners take their dependents along", func() error {
		if err := c.Delete(ctx, newWidget("w04")); err != nil {
			return err
		}
		return eventually("gone", func() (bool, string) {
			w := newWidget("w04")
			err1 := c.Get(ctx, client.ObjectKeyFromObject(w), w)
			_, err2 := kube.CoreV1().ConfigMaps(ns).Get(ctx, "w04", metav1.GetOptions{})
			return apierrors.IsNotFound(err1) && apierrors.IsNotFound(err2), fmt.Sprint(err1, err2)
		})
	})
	check("foreground deletion waits for what blocks it", func() error {
		if err := c.Delete(ctx, newWidget("w05"), client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
			return err
		}
		return eventually("gone", func() (bool, string) {
			w := newWidget("w05")
			err1 := c.Get(ctx, client.ObjectKeyFromObject(w), w)
			_, err2 := kube.CoreV1().ConfigMaps(ns).Get(ctx, "w05", metav1.GetOptions{})
			if apierrors.IsNotFound(err1) && !apierrors.IsNotFound(err2) {
				return false, "the owner went first"
			}
			return apierrors.IsNotFound(err1), fmt.Sprint(err1, err2)
		})
	})
	check("orphans stay, without their owner", func() error {
		if err := c.Delete(ctx, newWidget("w06"), client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
			return err
		}
		return eventually("orphaned", func() (bool, string) {
			w := newWidget("w06")
			err1 := c.Get(ctx, client.ObjectKeyFromObject(w), w)
			cm, err2 := kube.CoreV1().ConfigMaps(ns).Get(ctx, "w06", metav1.GetOptions{})
			return apierrors.IsNotFound(err1) && err2 == nil && len(cm.OwnerReferences) == 0, fmt.Sprint(err1, err2, cm.OwnerReferences)
		})
	})
	check("the scale subresource of a custom resource", func() error {
		scale := &unstructured.Unstructured{}
		scale.SetAPIVersion("autoscaling/v1")
		scale.SetKind("Scale")
		w := newWidget("w07")
		if err := c.SubResource("scale").Get(ctx, w, scale); err != nil {
			return err
		}
		for _, of := range []string{"spec", "status"} {
			if replicas, _, _ := unstructured.NestedInt64(scale.Object, of, "replicas"); replicas != 1 {
				return fmt.Errorf("%v", scale)
			}
		}
		_ = unstructured.SetNestedField(scale.Object, int64(3), "spec", "replicas")
		if err := c.SubResource("scale").Update(ctx, w, client.WithSubResourceBody(scale)); err != nil {
			return err
		}
		return reconciled("w07", 3)
	})
	check("server-side apply: who owns a field, and who takes it", func() error {
		apply := func(manager string, force bool, color string) error {
			w := newWidget("applied")
			_ = unstructured.SetNestedField(w.Object, color, "spec", "color")
			_, err := dyn.Resource(widgetGVK.GroupVersion().WithResource("widgets")).Namespace(ns).Apply(ctx, "applied", w, metav1.ApplyOptions{FieldManager: manager, Force: force})
			return err
		}
		if err := apply("one", false, "red"); err != nil {
			return err
		}
		err := apply("two", false, "blue")
		if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `conflict with "one": .spec.color`) {
			return fmt.Errorf("no conflict: %v", err)
		}
		if err := apply("two", true, "blue"); err != nil {
			return err
		}
		w := newWidget("applied")
		if err := c.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil {
			return err
		}
		color, _, _ := unstructured.NestedString(w.Object, "spec", "color")
		return expect(color == "blue" && !strings.Contains(fmt.Sprint(w.GetManagedFields()), "{one "), "%v %v", color, w.GetManagedFields())
	})
	check("typed server-side apply, extract, apply again", func() error {
		d := applyappsv1.Deployment("web", ns).WithSpec(applyappsv1.DeploymentSpec().WithReplicas(2).
			WithSelector(applymetav1.LabelSelector().WithMatchLabels(map[string]string{"app": "web"})).
			WithTemplate(applycorev1.PodTemplateSpec().WithLabels(map[string]string{"app": "web"}).
				WithSpec(applycorev1.PodSpec().WithContainers(applycorev1.Container().WithName("web").WithImage("nginx").
					WithPorts(applycorev1.ContainerPort().WithContainerPort(80))))))
		made, err := kube.AppsV1().Deployments(ns).Apply(ctx, d, metav1.ApplyOptions{FieldManager: "me"})
		if err != nil {
			return err
		}
		extracted, err := applyappsv1.ExtractDeployment(made, "me")
		if err != nil {
			return err
		}
		if *extracted.Spec.Replicas != 2 || extracted.Spec.Strategy != nil {
			return fmt.Errorf("extracted %v", extracted.Spec)
		}
		extracted.Spec.WithReplicas(3)
		if _, err := kubeProto.AppsV1().Deployments(ns).Apply(ctx, extracted, metav1.ApplyOptions{FieldManager: "me"}); err != nil {
			return err
		}
		return eventually("available", func() (bool, string) {
			got, err := kubeProto.AppsV1().Deployments(ns).Get(ctx, "web", metav1.GetOptions{})
			if err != nil {
				return false, err.Error()
			}
			return got.Status.AvailableReplicas == 3 && got.Status.ObservedGeneration == got.Generation, fmt.Sprint(got.Status)
		})
	})
	check("informers, streaming lists and metadata informers agree with the list while three write", func() error {
		os.Setenv("ENABLE_CLIENT_GO_WATCH_LIST_ALPHA", "true")
		defer os.Unsetenv("ENABLE_CLIENT_GO_WATCH_LIST_ALPHA")
		stop := make(chan struct{})
		defer close(stop)
		f := informers.NewSharedInformerFactoryWithOptions(kubeProto, 0, informers.WithNamespace(ns))
		inf := f.Core().V1().ConfigMaps().Informer()
		f.Start(stop)
		mf := metadatainformer.NewFilteredSharedInformerFactory(metadata.NewForConfigOrDie(cfg), 0, ns, nil)
		minf := mf.ForResource(corev1.SchemeGroupVersion.WithResource("configmaps")).Informer()
		mf.Start(stop)
		if !cache.WaitForCacheSync(stop, inf.HasSynced, minf.HasSynced) {
			return fmt.Errorf("not synced")
		}
		var wg sync.WaitGroup
		for n := 0; n < 3; n++ {
			wg.Add(1)
			go func(n int) {
				defer wg.Done()
				for i := 0; i < 60; i++ {
					name := fmt.Sprintf("churn-%d-%d", n, i%7)
					cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"i": fmt.Sprint(i)}}
					if _, err := kube.CoreV1().ConfigMaps(ns).Create(ctx, cm, metav1.CreateOptions{}); apierrors.IsAlreadyExists(err) {
						if i%5 == 0 {
							_ = kube.CoreV1().ConfigMaps(ns).Delete(ctx, name, metav1.DeleteOptions{})
						} else {
							_, _ = kube.CoreV1().ConfigMaps(ns).Update(ctx, cm, metav1.UpdateOptions{})
						}
					}
				}
			}(n)
		}
		wg.Wait()
		list, err := kube.CoreV1().ConfigMaps(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		return eventually("agree", func() (bool, string) {
			want, got, meta := map[string]string{}, map[string]string{}, map[string]string{}
			for _, o := range list.Items {
				want[o.Name] = o.ResourceVersion
			}
			for _, o := range inf.GetStore().List() {
				got[o.(*corev1.ConfigMap).Name] = o.(*corev1.ConfigMap).ResourceVersion
			}
			for _, o := range minf.GetStore().List() {
				meta[o.(*metav1.PartialObjectMetadata).Name] = o.(*metav1.PartialObjectMetadata).ResourceVersion
			}
			return reflect.DeepEqual(want, got) && reflect.DeepEqual(want, meta), fmt.Sprint(want, got, meta)
		})
	})
	check("pages", func() error {
		seen := map[string]bool{}
		p := pager.New(pager.SimplePageFunc(func(o metav1.ListOptions) (runtime.Object, error) { return kube.CoreV1().ConfigMaps(ns).List(ctx, o) }))
		p.PageSize = 4
		if err := p.EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error { seen[o.(*corev1.ConfigMap).Name] = true; return nil }); err != nil {
			return err
		}
		first, err := kube.CoreV1().ConfigMaps(ns).List(ctx, metav1.ListOptions{Limit: 4})
		if err != nil {
			return err
		}
		return expect(first.RemainingItemCount != nil && int(*first.RemainingItemCount) == len(seen)-4, "%v of %d", first.RemainingItemCount, len(seen))
	})
	check("an old version is gone, and a retry watcher says so", func() error {
		w, err := kube.CoreV1().ConfigMaps(ns).Watch(ctx, metav1.ListOptions{ResourceVersion: "1"})
		if err == nil {
			e := <-w.ResultChan()
			err = apierrors.FromObject(e.Object)
		}
		return expect(apierrors.IsResourceExpired(err) || apierrors.IsGone(err), "%v", err)
	})
	check("until: a pod's phase, by field selector", func() error {
		pods, err := kube.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{LabelSelector: "app=web", FieldSelector: "status.phase=Running"})
		if err != nil || len(pods.Items) != 3 {
			return fmt.Errorf("%v %v", len(pods.Items), err)
		}
		lw := cache.NewListWatchFromClient(kube.CoreV1().RESTClient(), "pods", ns, fields.OneTermEqualSelector("metadata.name", pods.Items[0].Name))
		tctx, cancel := context.WithTimeout(ctx, 40*time.Second)
		defer cancel()
		go func() {
			time.Sleep(200 * time.Millisecond)
			_ = kube.CoreV1().Pods(ns).EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pods.Items[0].Name, Namespace: ns}})
		}()
		_, err = watchtools.UntilWithSync(tctx, lw, &corev1.Pod{}, nil, func(e watch.Event) (bool, error) { return e.Type == watch.Deleted, nil })
		return err
	})
	check("updates of status by client-go leave the spec", func() error {
		d, err := kube.AppsV1().Deployments(ns).Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		d.Spec.Replicas = ptr(int32(9))
		d.Status.Conditions = append(d.Status.Conditions, appsv1.DeploymentCondition{Type: "Mine", Status: "True"})
		got, err := kube.AppsV1().Deployments(ns).UpdateStatus(ctx, d, metav1.UpdateOptions{})
		if err != nil {
			if apierrors.IsConflict(err) {
				return nil
			}
			return err
		}
		return expect(*got.Spec.Replicas == 3 && got.Generation == d.Generation, "%v", got.Spec.Replicas)
	})
	check("who I am, in whose name, with which token", func() error {
		other := rest.CopyConfig(cfg)
		other.Impersonate = rest.ImpersonationConfig{UserName: "dave", UID: "7", Groups: []string{"dev"}, Extra: map[string][]string{"acme.com/p": {"x"}}}
		me, err := kubernetes.NewForConfigOrDie(other).AuthenticationV1beta1().SelfSubjectReviews().Create(ctx, &authenticationv1beta1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		info := me.Status.UserInfo
		if info.Username != "dave" || info.UID != "7" || !reflect.DeepEqual(info.Groups, []string{"dev", "system:authenticated"}) || info.Extra["acme.com/p"][0] != "x" {
			return fmt.Errorf("%v", info)
		}
		sar, err := kubeProto.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: "dave", Groups: []string{"system:masters"}, ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Resource: "secrets"}}}, metav1.CreateOptions{})
		if err != nil || !sar.Status.Allowed {
			return fmt.Errorf("%v %v", sar, err)
		}
		tr, err := kube.CoreV1().ServiceAccounts(ns).CreateToken(ctx, "default", &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{"x"}}}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		review, err := kube.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: tr.Status.Token, Audiences: []string{"x"}}}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		return expect(review.Status.Authenticated && review.Status.User.Username == "system:serviceaccount:"+ns+":default", "%v", review.Status)
	})
	check("dry runs store nothing", func() error {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "dry-", Namespace: ns}}
		if err := client.NewDryRunClient(c).Create(ctx, cm); err != nil {
			return err
		}
		err := c.Get(ctx, client.ObjectKeyFromObject(cm), cm)
		return expect(apierrors.IsNotFound(err), "%v", err)
	})
	check("a service is defaulted and allocated", func() error {
		s, err := kubeProto.CoreV1().Services(ns).Create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}}}}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		return expect(s.Spec.ClusterIP != "" && s.Spec.Ports[0].TargetPort.IntVal == 80 && s.Spec.Ports[0].Protocol == "TCP" && *s.Spec.InternalTrafficPolicy == "Cluster" && len(s.Spec.IPFamilies) == 1, "%v", s.Spec)
	})
	check("collections are deleted by selector", func() error {
		if err := c.DeleteAllOf(ctx, newWidget(""), client.InNamespace(ns)); err != nil {
			return err
		}
		return eventually("all gone", func() (bool, string) {
			list, err := dyn.Resource(widgetGVK.GroupVersion().WithResource("widgets")).Namespace(ns).List(ctx, metav1.ListOptions{})
			return err == nil && len(list.Items) == 0, fmt.Sprint(err, len(list.Items))
		})
	})
	check("the leader that goes hands over, and the next one works", func() error {
		stopA()
		if err := <-doneA; err != nil {
			return fmt.Errorf("the first ended: %v", err)
		}
		select {
		case <-electedB:
		case <-time.After(10 * time.Second):
			return fmt.Errorf("the second is not elected")
		}
		if err := c.Create(ctx, newWidget("late")); err != nil {
			return err
		}
		if err := reconciled("late", 1); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		return expect(by["a"] > 0 && by["b"] > 0, "%v", by)
	})
	check("a namespace goes with all it holds, custom resources with finalizers too", func() error {
		if err := kube.CoreV1().Namespaces().Delete(ctx, ns, metav1.DeleteOptions{}); err != nil {
			return err
		}
		_, err := kube.CoreV1().ConfigMaps(ns).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{})
		if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) && !apierrors.IsNotFound(err) {
			return fmt.Errorf("%v", err)
		}
		return eventually("gone", func() (bool, string) {
			_, err := kube.CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{})
			return apierrors.IsNotFound(err), fmt.Sprint(err)
		})
	})
	stopB()
	<-doneB
	check("a definition goes with its kind", func() error {
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"}}
		if err := c.Delete(ctx, crd); err != nil {
			return err
		}
		return eventually("gone", func() (bool, string) {
			_, err := dyn.Resource(widgetGVK.GroupVersion().WithResource("widgets")).Namespace("default").List(ctx, metav1.ListOptions{})
			return apierrors.IsNotFound(err), fmt.Sprint(err)
		})
	})
	if failed > 0 {
		fmt.Printf("%d differ\n", failed)
		os.Exit(1)
	}
	fmt.Println("all well")
}

func ptr[T any](v T) *T { return &v }
