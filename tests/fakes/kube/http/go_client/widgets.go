// The controller: each Widget has a ConfigMap with its size, a finalizer, and a status that says how far it has come.
package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

var widgetGVK = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

func newWidget(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(widgetGVK)
	u.SetNamespace(ns)
	u.SetName(name)
	_ = unstructured.SetNestedMap(u.Object, map[string]interface{}{}, "spec") // in which there are defaults
	return u
}

type reconciler struct {
	client.Client
	recorder record.EventRecorder
	id       string
	mu       *sync.Mutex
	by       map[string]int
}

const finalizer = "example.com/cleanup"

func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	r.mu.Lock()
	r.by[r.id]++
	r.mu.Unlock()
	w := newWidget(req.Name)
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !w.GetDeletionTimestamp().IsZero() {
		if controllerutil.RemoveFinalizer(w, finalizer) {
			return ctrl.Result{}, r.Update(ctx, w)
		}
		return ctrl.Result{}, nil
	}
	if !controllerutil.ContainsFinalizer(w, finalizer) {
		base := w.DeepCopy()
		controllerutil.AddFinalizer(w, finalizer)
		if err := r.Patch(ctx, w, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})); err != nil {
			return ctrl.Result{}, err
		}
	}
	size, _, _ := unstructured.NestedInt64(w.Object, "spec", "size")
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: req.Name, Namespace: req.Namespace}}
	op, err := controllerutil.CreateOrUpdate(ctx, r.Client, cm, func() error {
		cm.Data = map[string]string{"size": fmt.Sprint(size)}
		return controllerutil.SetControllerReference(w, cm, r.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	if op != controllerutil.OperationResultNone {
		r.recorder.Eventf(w, "Normal", "Applied", "config map %s", op)
	}
	observed, _, _ := unstructured.NestedInt64(w.Object, "status", "observedGeneration")
	if observed != w.GetGeneration() {
		base := w.DeepCopy()
		_ = unstructured.SetNestedField(w.Object, w.GetGeneration(), "status", "observedGeneration")
		_ = unstructured.SetNestedField(w.Object, size, "status", "size")
		if err := r.Status().Patch(ctx, w, client.MergeFrom(base)); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, nil
}

func startManager(ctx context.Context, cfg *rest.Config, id string, mu *sync.Mutex, by map[string]int) (<-chan struct{}, <-chan error) {
	lease, renew, again := 4*time.Second, 2*time.Second, 500*time.Millisecond
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: clientgoscheme.Scheme, MetricsBindAddress: "0", HealthProbeBindAddress: "0",
		LeaderElection: true, LeaderElectionID: "widgets.example.com", LeaderElectionNamespace: ns,
		LeaderElectionReleaseOnCancel: true, LeaseDuration: &lease, RenewDeadline: &renew, RetryPeriod: &again,
	})
	done := make(chan error, 1)
	if err != nil {
		done <- err
		return nil, done
	}
	r := &reconciler{Client: mgr.GetClient(), recorder: mgr.GetEventRecorderFor("widgets"), id: id, mu: mu, by: by}
	if err := ctrl.NewControllerManagedBy(mgr).Named("widgets-" + id).For(newWidget("")).Owns(&corev1.ConfigMap{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).Complete(r); err != nil {
		done <- err
		return nil, done
	}
	go func() { done <- mgr.Start(ctx) }()
	return mgr.Elected(), done
}
